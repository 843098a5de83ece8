import type { CallOptions, LeaseTable } from "./context.ts";
import { free } from "./free.ts";
import type { Checkpoint, Holder } from "./holder.ts";
import type { Outcome } from "./outcome.ts";

export interface ReleaseRequest extends Holder {
  /** The final checkpoint, written in the same breath. */
  readonly checkpoint?: Checkpoint;
}

/** The value of `lease_expires_at_ms` that means: free now. */
export const FREE_NOW_MS = 0;

/** Gives a lease back so that anybody may take it at once. */
export function release(
  table: LeaseTable,
  request: ReleaseRequest,
  options?: CallOptions,
): Promise<Outcome<undefined>> {
  return free(table, { ...request, expiresAtMs: FREE_NOW_MS }, options);
}
