import type { Clock } from "../../shared/clock.ts";

export interface Invocation {
  readonly clock: Clock;
  /** Milliseconds until this invocation is killed. */
  readonly remainingMs: () => number;
}

/** Work is cut off so long before the end, so that its outcome can still be logged and reported. */
const CLOSING_MS = 1_000;

/** Calls `work` at once, with a signal that aborts shortly before the invocation would be killed. */
export async function withTimeLimit<T>(
  { clock, remainingMs }: Invocation,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const cancel = clock.after(remainingMs() - CLOSING_MS, () => controller.abort());
  try {
    return await work(controller.signal);
  } finally {
    cancel();
  }
}
