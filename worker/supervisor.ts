import { fork, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { dynamoDbClient } from "../shared/aws/clients.ts";
import { SystemClock } from "../shared/clock.ts";
import { ConfigurationError } from "../shared/config/compile.ts";
import { errorFields } from "../shared/logger.ts";
import { EXIT } from "./exit-codes.ts";
import { taskIdentity } from "./identity.ts";
import { supervise } from "./supervision/supervise.ts";
import { workerSettings, type WorkerSettings } from "./settings.ts";
import { workerLogger } from "./telemetry/logger.ts";

/** PID 1 of a task: starts the worker, forwards signals, and frees the task's leases when the worker dies. */
async function main(): Promise<void> {
  const settings = settingsOrExit();
  const task = settings.taskId === "" ? await taskIdentity(process.env) : settings.taskId;
  const logger = workerLogger(settings.logLevel, task);
  const client = dynamoDbClient({
    attempts: settings.attempts,
    attemptTimeoutMs: settings.attemptTimeoutMs,
    maxSockets: 32,
  });
  const code = await supervise({
    task,
    table: { client, tableName: settings.connectionsTable },
    clock: new SystemClock(),
    logger,
    settings,
    signals: process,
    spawn: () => startWorker(task),
  });
  process.exit(code);
}

/** The bundle stands beside this file when deployed, the source when run from the repository. */
function startWorker(task: string): ChildProcess {
  const bundled = fileURLToPath(new URL("./worker.mjs", import.meta.url));
  const entry = existsSync(bundled) ? bundled : fileURLToPath(new URL("./main.ts", import.meta.url));
  // The channel is not used for messages: its end tells either side that the other is gone.
  return fork(entry, [], {
    env: { ...process.env, WS_FLEET_TASK_ID: task },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
}

function settingsOrExit(): WorkerSettings {
  try {
    return workerSettings(process.env);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    console.error(error.message);
    process.exit(EXIT.configuration);
  }
}

main().catch((error: unknown) => {
  console.error("supervisor failed:", errorFields(error));
  process.exit(EXIT.crashed);
});
