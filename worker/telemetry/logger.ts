import { pino } from "pino";
import type { Logger } from "../../shared/logger.ts";

/** Structured JSON on standard output, each line with the task. */
export function workerLogger(level: string, task: string): Logger {
  return pino({
    level,
    base: { task },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    messageKey: "message",
  });
}
