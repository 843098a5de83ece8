import { Command } from "commander";
import { writablePath } from "../cli/demo-options.ts";
import { decimal, wholeNumber } from "../cli/numbers.ts";
import { parseArguments, runTimings, UsageError, type RunTimings } from "../cli/usage.ts";
import { planChaos, type PlannedFault } from "./plan.ts";

export interface ChaosOptions {
  readonly connections: number;
  readonly workers: number;
  readonly minutes: number;
  readonly seconds: number;
  readonly rate: number;
  readonly seed: number;
  /** Absolute path, or `-` for the standard output; undefined: none is wanted. */
  readonly json: string | undefined;
  readonly tuning: Readonly<Record<string, string>>;
  readonly timings: RunTimings;
  readonly plan: readonly PlannedFault[];
}

interface Raw {
  connections: number;
  workers: number;
  minutes: number;
  rate: number;
  seed: number;
  json?: string;
}

/** Between the last fault and the end of the speech: what is still spoken shows that all is well again. */
const CALM_SPEECH_MS = 15_000;
/** As fast as connections are started. */
const STARTS_PER_SECOND = 75;
/** So that a half-open socket is found out while it is one. */
const WATCHFUL = { WS_FLEET_PING_INTERVAL_MS: "3000", WS_FLEET_IDLE_TIMEOUT_MS: "9000" };
/** Servers that others run cannot be stood in front of, and their faults would be somebody else's. */
const ENDPOINTS = ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS"];

function chaosCommand(): Command {
  return new Command("npm run chaos --")
    .usage("[options]")
    .description(
      "Runs the whole fleet on real speeches, with a proxy that breaks the network between the workers and DynamoDB, SQS " +
        "and the upstream, and with workers and upstream struck at random; then lets it calm down, and audits what was " +
        "stored. Exits with 0 only if nothing is missing or different, every connection was owned exactly once, and all " +
        "streamed again within their bounds; 1 if not; 2 for options that cannot work.",
    )
    .option("--minutes <m>", "how long each connection speaks", decimal(0.5, 120), 1)
    .option("--seed <n>", "of the faults: the same options and seed give the same plan", wholeNumber(0, 2 ** 31), 1)
    .option("--connections <n>", "connections, one in five on a feed that cannot replay", wholeNumber(1, 2_000), 100)
    .option("--workers <n>", "worker tasks", wholeNumber(2, 16), 3)
    .option("--rate <messages>", "messages per second over all connections", decimal(0.1, 20_000), 300)
    .option("--json <file>", "write the report there as JSON, too; - is the standard output, for the JSON alone")
    .addHelpText("after", "\nExample: npm run chaos -- --minutes 10 --seed 7 --json chaos.json\n");
}

/** @throws {UsageError} naming the option and the rule, or {HelpShown} */
export function chaosOptions(argv: readonly string[], env: Readonly<Record<string, string | undefined>>): ChaosOptions {
  const raw = parseArguments(chaosCommand(), argv).opts<Raw>();
  for (const name of ENDPOINTS) {
    if ((env[name] ?? "") !== "") {
      throw new UsageError(`${name}: must be unset, since chaos stands in front of embedded servers only`);
    }
  }
  const { tuning, timings } = runTimings({ ...WATCHFUL, ...env });
  const room = (raw.workers - 1) * timings.maxConnections;
  if (raw.connections > room) {
    throw new UsageError(
      `--connections: the workers that are left by a fault hold ${room} at most, got ${raw.connections}`,
    );
  }
  const { connections, workers, minutes, rate, seed } = raw;
  const seconds = Math.round(minutes * 60);
  const lengthMs = seconds * 1000 - CALM_SPEECH_MS - Math.round((connections * 1000) / STARTS_PER_SECOND);
  const plan = planChaos({ seed, workers, lengthMs, leaseMs: timings.leaseMs });
  if (plan.length === 0) {
    throw new UsageError(
      `--minutes: must leave time for faults, which ${minutes} does not with ${connections} connections`,
    );
  }
  const json = raw.json === undefined ? undefined : writablePath(raw.json);
  return { connections, workers, minutes, seconds, rate, seed, json, tuning, timings, plan };
}
