import { Logger as PowertoolsLogger } from "@aws-lambda-powertools/logger";
import type { SettingValue } from "../shared/config/definitions.ts";
import type { Logger } from "../shared/logger.ts";

const LEVELS = {
  trace: "TRACE",
  debug: "DEBUG",
  info: "INFO",
  warn: "WARN",
  error: "ERROR",
  fatal: "CRITICAL",
  silent: "SILENT",
} as const satisfies Record<SettingValue<"logLevel">, string>;

/** Logs JSON lines for CloudWatch; `service` is on each of them. */
export function powertoolsLogger(service: string, level: SettingValue<"logLevel">): PowertoolsLogger {
  return new PowertoolsLogger({ serviceName: service, logLevel: LEVELS[level] });
}

/** The project's logger over Powertools, which takes the message first. */
export function adaptLogger(logger: PowertoolsLogger): Logger {
  return {
    debug: (fields, message) => logger.debug(message, { ...fields }),
    info: (fields, message) => logger.info(message, { ...fields }),
    warn: (fields, message) => logger.warn(message, { ...fields }),
    error: (fields, message) => logger.error(message, { ...fields }),
  };
}
