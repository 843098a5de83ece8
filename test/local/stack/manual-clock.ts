import type { Cancel, Clock } from "../../../shared/clock.ts";

/** Time that moves only when a test says so; due timers run in order of their time. */
export class ManualClock implements Clock {
  #nowMs: number;
  readonly #timers = new Set<{ atMs: number; fn: () => void }>();

  constructor(startMs = 1_000_000) {
    this.#nowMs = startMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  after(delayMs: number, fn: () => void): Cancel {
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), fn };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Moves on by `ms`, and lets everything that a timer sets off settle before the next one. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await settled();
    for (;;) {
      const next = [...this.#timers].filter((timer) => timer.atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.fn();
      await settled();
    }
    this.#nowMs = endMs;
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }
}

/** Resolves when all promise reactions that are due have run. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
