import { Command } from "commander";
import { accessSync, closeSync, constants, openSync, statSync, unlinkSync } from "node:fs";
import path from "node:path";
import { FAULT_KINDS, FAULT_MEANINGS, neededMs, type FaultCounts, type RecoveryTimings } from "../run/fault-plan.ts";
import { decimal, wholeNumber } from "./numbers.ts";
import { parseArguments, runTimings, UsageError, type RunTimings } from "./usage.ts";

export interface DemoOptions {
  readonly connections: number;
  readonly workers: number;
  readonly seconds: number;
  readonly rate: number;
  readonly faults: FaultCounts;
  readonly taskEvents: boolean;
  readonly stream: boolean;
  readonly queue: boolean;
  readonly eventDelayMs: number;
  readonly seed: number;
  /** Absolute path, or `-` for the standard output; undefined: none is wanted. */
  readonly json: string | undefined;
  readonly tuning: Readonly<Record<string, string>>;
  readonly timings: RunTimings;
  readonly recovery: RecoveryTimings;
}

interface Raw {
  connections: number;
  workers: number;
  seconds: number;
  rate: number;
  crash: number;
  kill: number;
  term: number;
  freeze: number;
  taskEvents: boolean;
  stream: boolean;
  queue: boolean;
  eventDelay: number;
  seed: number;
  json?: string;
}

export function demoCommand(): Command {
  const command = new Command("npm run demo --")
    .usage("[options]")
    .description(
      "Runs the whole fleet on real speeches, plays faults, and audits what was stored. Exits with 0 only if nothing is " +
        "missing or different and every connection was owned exactly once; 1 if not; 2 for options that cannot work.",
    )
    .option("--connections <n>", "connections, one in five on a feed that cannot replay", wholeNumber(1, 5_000), 100)
    .option("--workers <n>", "worker tasks", wholeNumber(1, 16), 3)
    .option("--seconds <s>", "how long each connection speaks", wholeNumber(5, 3_600), 60)
    .option("--rate <messages>", "messages per second over all connections", decimal(0.1, 20_000), 400);
  for (const kind of FAULT_KINDS) {
    command.option(`--${kind} <n>`, `so many times: ${FAULT_MEANINGS[kind]}`, wholeNumber(0, 100), 0);
  }
  return command
    .option("--no-task-events", "no event tells that a task has stopped: its leases expire")
    .option("--no-stream", "no event tells that a connection became free: sweeps find it")
    .option("--no-queue", "the hint queue cannot be reached: workers look for orphans themselves")
    .option("--event-delay <s>", "from a task's end to the event that tells of it", decimal(0, 120), 10)
    .option("--seed <n>", "of the texts' positions and of what is hit by which fault", wholeNumber(0, 2 ** 31), 1)
    .option("--json <file>", "write the report there as JSON, too; - is the standard output, for the JSON alone")
    .addHelpText(
      "after",
      "\nExample: npm run demo -- --connections 300 --workers 4 --seconds 120 --rate 1500 --crash 1 --kill 1 --term 1\n",
    );
}

/** @throws {UsageError} naming the option and the rule, or {HelpShown} */
export function demoOptions(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): DemoOptions {
  const raw = parseArguments(demoCommand(), argv).opts<Raw>();
  const { tuning, timings } = runTimings(env);
  const faults = { crash: raw.crash, kill: raw.kill, term: raw.term, freeze: raw.freeze };
  const eventDelayMs = raw.eventDelay * 1000;
  const { taskEvents, stream, queue } = raw;
  const recovery = { ...timings, eventDelayMs, taskEvents, stream, queue };
  checkFaults(raw, faults, recovery);
  checkCapacity(raw, faults, timings.maxConnections);
  if (!queue && (env["AWS_ENDPOINT_URL_SQS"] ?? "") !== "") {
    throw new UsageError("--no-queue takes the embedded queue away: it cannot be used with AWS_ENDPOINT_URL_SQS");
  }
  const { connections, workers, seconds, rate, seed } = raw;
  const json = raw.json === undefined ? undefined : writablePath(raw.json);
  return {
    ...{ connections, workers, seconds, rate, faults, seed, json },
    ...{ taskEvents, stream, queue, eventDelayMs, tuning, timings, recovery },
  };
}

function checkFaults({ workers, seconds }: Raw, faults: FaultCounts, recovery: RecoveryTimings): void {
  const asked = FAULT_KINDS.filter((kind) => faults[kind] > 0).map((kind) => `--${kind}`);
  if (asked.length === 0) return;
  if (workers < 2)
    throw new UsageError(`${asked.join(", ")}: need --workers of at least 2, so that another can take over`);
  const needed = Math.ceil(neededMs(faults, recovery) / 1000);
  if (seconds < needed) {
    throw new UsageError(
      `${asked.join(", ")}: need --seconds of at least ${needed}, one after the other, got ${seconds}`,
    );
  }
}

function checkCapacity({ connections, workers }: Raw, faults: FaultCounts, maxConnections: number): void {
  const hit = FAULT_KINDS.some((kind) => faults[kind] > 0) ? 1 : 0;
  const room = (workers - hit) * maxConnections;
  if (connections <= room) return;
  const rule = hit === 1 ? "the workers that are left by a fault" : "the workers";
  throw new UsageError(
    `--connections: ${rule} hold ${room} at most (${maxConnections} each), got ${connections} with --workers ${workers}`,
  );
}

/** Found out now, not after minutes of a run whose report has no place to go. */
export function writablePath(file: string): string {
  if (file === "-") return file;
  if (file === "") throw new UsageError("--json: must name a file, or - for the standard output");
  const full = path.resolve(file);
  try {
    // A name that is too long is no missing entry: it throws here.
    const there = statSync(full, { throwIfNoEntry: false });
    if (there?.isDirectory() === true) throw new UsageError(`--json: must name a file, and ${full} is a folder`);
    // Nothing but a real open knows about read-only mounts and the like. A pipe or device is opened once, at the end.
    if (there === undefined || there.isFile()) closeSync(openSync(full, "a"));
    else accessSync(full, constants.W_OK);
    if (there === undefined) unlinkSync(full);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`--json: ${full} must be writable: ${error instanceof Error ? error.message : String(error)}`);
  }
  return full;
}
