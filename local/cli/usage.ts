import { CommanderError, type Command } from "commander";
import { compileSettings, ConfigurationError } from "../../shared/config/compile.ts";
import { TIMING_DEFINITIONS, WORKER_DEFINITIONS } from "../../shared/config/definitions.ts";

/** The command line cannot work. The message names the option and the rule; programs print it and exit with code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The user asked for help and has got it. */
export class HelpShown extends Error {}

/** Parses the arguments into the command. @throws {UsageError} or {HelpShown} */
export function parseArguments(command: Command, argv: readonly string[]): Command {
  let said = "";
  command
    .exitOverride()
    .allowExcessArguments(false)
    .configureOutput({ writeErr: (text) => (said += text) });
  try {
    command.parse([...argv], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) throw new HelpShown();
    const reason = (said === "" ? error.message : said).trim().replace(/^error: /u, "");
    throw new UsageError(reason);
  }
  return command;
}

type Env = Readonly<Record<string, string | undefined>>;
export type RunTimings = ReturnType<typeof runTimings>["timings"];

/** All of them, so that what a worker would refuse is refused before anything starts. */
const NAMES = Object.keys({ ...TIMING_DEFINITIONS, ...WORKER_DEFINITIONS }) as (
  keyof typeof TIMING_DEFINITIONS | keyof typeof WORKER_DEFINITIONS
)[];

/** Set by the runner itself for each process. */
const OWN = [
  "WS_FLEET_CONNECTIONS_TABLE",
  "WS_FLEET_MESSAGES_TABLE",
  "WS_FLEET_HINT_QUEUE_URL",
  "WS_FLEET_DLQ_URL",
  "WS_FLEET_SERVICE",
  "WS_FLEET_CLUSTER",
  "WS_FLEET_METRICS_URL",
  "WS_FLEET_RUNNING_TASKS_URL",
  "WS_FLEET_HEALTH_PORT",
  "WS_FLEET_JOURNAL_FILE",
  "WS_FLEET_TASK_ID",
];

/**
 * The user's own WS_FLEET_* settings: they go to workers and functions, and the run's patience follows from them.
 *
 * @throws {UsageError} naming the setting and the rule
 */
export function runTimings(env: Env) {
  const tuning: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith("WS_FLEET_") || value === undefined) continue;
    if (OWN.includes(name)) throw new UsageError(`${name}: is set by the local runner and cannot be chosen`);
    tuning[name] = value;
  }
  try {
    return { tuning, timings: compileSettings(tuning, [...NAMES, "logLevel"]) };
  } catch (error) {
    if (error instanceof ConfigurationError) throw new UsageError(error.message);
    throw error;
  }
}
