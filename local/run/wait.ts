import { sleep, type Clock } from "../../shared/clock.ts";

/** The user asked for the end. */
export class InterruptedError extends Error {
  override readonly name = "InterruptedError";
}

/** A part of the run ended by itself, and nothing can replace it. The message says which and how. */
export class PartLostError extends Error {
  override readonly name = "PartLostError";
}

export interface WaitOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly limitMs: number;
  readonly everyMs?: number;
}

/**
 * Looks until the condition holds.
 *
 * @returns false when it did not within the limit
 * @throws {InterruptedError} when the signal aborts
 */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  { clock, signal, limitMs, everyMs = 100 }: WaitOptions,
): Promise<boolean> {
  const endMs = clock.monotonicMs() + limitMs;
  for (;;) {
    if (signal.aborted) throw new InterruptedError("interrupted");
    if (await condition()) return true;
    if (clock.monotonicMs() >= endMs) return false;
    await sleep(clock, everyMs, signal);
  }
}

/** @throws {InterruptedError} when the signal aborts */
export async function pause(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  await sleep(clock, ms, signal);
  if (signal.aborted) throw new InterruptedError("interrupted");
}
