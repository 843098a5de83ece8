import { Command } from "commander";
import { decimal, wholeNumber } from "./numbers.ts";
import { parseArguments, runTimings, UsageError, type RunTimings } from "./usage.ts";

export interface StartOptions {
  readonly connections: number;
  readonly workers: number;
  readonly rate: number;
  readonly minutes: number;
  readonly eventDelayMs: number;
  readonly seed: number;
  readonly tuning: Readonly<Record<string, string>>;
  readonly timings: RunTimings;
}

interface Raw {
  connections: number;
  workers: number;
  rate: number;
  minutes: number;
  eventDelay: number;
  seed: number;
}

/** @throws {UsageError} naming the option and the rule, or {HelpShown} */
export function startOptions(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): StartOptions {
  const command = new Command("npm start --")
    .usage("[options]")
    .description("Runs the whole fleet on real speeches and shows it live, until Ctrl-C.")
    .option("--connections <n>", "connections, one in five on a feed that cannot replay", wholeNumber(1, 5_000), 200)
    .option("--workers <n>", "worker tasks", wholeNumber(1, 16), 3)
    .option("--rate <messages>", "messages per second over all connections", decimal(0.1, 20_000), 300)
    .option("--minutes <m>", "how long each connection has something to say", wholeNumber(1, 600), 60)
    .option("--event-delay <s>", "from a task's end to the event that tells of it", decimal(0, 120), 10)
    .option("--seed <n>", "of the texts' positions", wholeNumber(0, 2 ** 31), 1);
  const raw = parseArguments(command, argv).opts<Raw>();
  const { tuning, timings } = runTimings(env);
  const room = raw.workers * timings.maxConnections;
  if (raw.connections > room) {
    throw new UsageError(`--connections: the workers hold ${room} at most, got ${raw.connections}`);
  }
  const { connections, workers, rate, minutes, seed } = raw;
  return { connections, workers, rate, minutes, seed, eventDelayMs: raw.eventDelay * 1000, tuning, timings };
}
