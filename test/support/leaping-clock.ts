import type { Cancel, Clock } from "../../shared/clock.ts";

/**
 * A clock that leaps to the due time of whatever is waited for, one event-loop turn later. For code that sleeps between
 * requests to a real server: the pace is there to be measured, and nobody waits for it.
 */
export class LeapingClock implements Clock {
  #nowMs = 0;
  readonly #wallMs: number;

  constructor(wallMs: number) {
    this.#wallMs = wallMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#wallMs + this.#nowMs;
  }

  after(delayMs: number, fn: () => void): Cancel {
    const dueMs = this.#nowMs + Math.max(0, delayMs);
    const turn = setImmediate(() => {
      this.#nowMs = Math.max(this.#nowMs, dueMs);
      fn();
    });
    return () => clearImmediate(turn);
  }
}
