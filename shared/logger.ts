/** The part of a structured logger that this project uses; pino and the Powertools adapter both fit. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const nothing = (): void => undefined;

/** Swallows everything: for tests and tools that print by themselves. */
export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** What a log line says of an error: name and message, never a stack of somebody's credentials or headers. */
export function errorFields(error: unknown): { error: string; errorName: string } {
  if (error instanceof Error) return { error: error.message, errorName: error.name };
  return { error: String(error), errorName: "NonError" };
}
