import type { CallOptions, LeaseTable } from "./context.ts";
import { free } from "./free.ts";
import type { Checkpoint, Holder } from "./holder.ts";
import type { Outcome } from "./outcome.ts";

export interface ParkRequest extends Holder {
  /** Nobody takes the connection before this time (ms since the Unix epoch). */
  readonly untilMs: number;
  /**
   * Why, for people; cut to {@link MAX_ERROR_LENGTH} characters. Left out, neither `last_error` nor `failure_count` is
   * touched: for an item that has no room for the one, or whose other is no number.
   */
  readonly error?: string;
  readonly checkpoint?: Checkpoint;
}

export const MAX_ERROR_LENGTH = 512;

/** Gives a lease back, not to be taken before `untilMs`, and says why. */
export function park(table: LeaseTable, request: ParkRequest, options?: CallOptions): Promise<Outcome<undefined>> {
  const { untilMs, error, ...holder } = request;
  if (error === undefined) return free(table, { ...holder, expiresAtMs: untilMs }, options);
  return free(
    table,
    {
      ...holder,
      expiresAtMs: untilMs,
      assignments: ["last_error = :error", "failure_count = if_not_exists(failure_count, :none) + :one"],
      values: { ":error": { S: shortened(error) }, ":none": { N: "0" }, ":one": { N: "1" } },
    },
    options,
  );
}

/** A cut may halve a character; the store refuses a whole request for one lone surrogate, and the park would never end. */
function shortened(error: string): string {
  return error.slice(0, MAX_ERROR_LENGTH).toWellFormed();
}
