import { pino } from "pino";
import type { Logger } from "../../shared/logger.ts";

/** The runner's own log, as JSON lines in a file: its terminal belongs to the view. */
export function runnerLogger(path: string): Logger {
  return pino(
    { level: "debug", base: {}, timestamp: pino.stdTimeFunctions.isoTime, messageKey: "message" },
    pino.destination({ dest: path, sync: true }),
  );
}
