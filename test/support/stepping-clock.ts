import type { Cancel, Clock } from "../../shared/clock.ts";

/** Two clocks that a test moves each by itself: a suspended machine stops one of them, a correction steps the other. */
export class SteppingClock implements Clock {
  #monotonicMs: number;
  #wallMs: number;

  constructor(monotonicMs: number, wallMs: number) {
    this.#monotonicMs = monotonicMs;
    this.#wallMs = wallMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  wallMs(): number {
    return this.#wallMs;
  }

  after(): Cancel {
    throw new Error("nothing waits on this clock");
  }

  /** Both clocks pass the same time. */
  pass(ms: number): void {
    this.stepMonotonic(ms);
    this.stepWall(ms);
  }

  stepMonotonic(ms: number): void {
    if (ms < 0) throw new Error("a monotonic clock never falls");
    this.#monotonicMs += ms;
  }

  stepWall(ms: number): void {
    this.#wallMs += ms;
  }
}
