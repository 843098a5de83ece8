import type { Logger } from "../../shared/logger.ts";

/** Lines about single items in one run: enough to find the cause, too few to drown the log. */
const MAX_LINES = 20;

/** Counts all, logs the first few: one bad producer can spoil every item of a table. */
export class BoundedLog {
  readonly #logger: Logger;
  readonly #maxLines: number;
  #count = 0;

  constructor(logger: Logger, maxLines: number = MAX_LINES) {
    this.#logger = logger;
    this.#maxLines = maxLines;
  }

  get count(): number {
    return this.#count;
  }

  warn(fields: object, message: string): void {
    this.#count++;
    if (this.#count <= this.#maxLines) this.#logger.warn(fields, message);
  }

  /** Says how many lines were left out, if any. */
  close(message: string): void {
    const leftOut = this.#count - this.#maxLines;
    if (leftOut > 0) this.#logger.warn({ leftOut, total: this.#count }, message);
  }
}
