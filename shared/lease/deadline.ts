import type { Clock } from "../clock.ts";

/**
 * The moment after which an owner must not act, judged without trusting the wall clock: it is reached when **either**
 * the monotonic or the wall clock has advanced by the budget, since a suspended machine may stop one of them and a step
 * may move the other.
 */
export class Deadline {
  readonly #clock: Clock;
  readonly #monotonicMs: number;
  readonly #wallMs: number;

  private constructor(clock: Clock, monotonicMs: number, wallMs: number) {
    this.#clock = clock;
    this.#monotonicMs = monotonicMs;
    this.#wallMs = wallMs;
  }

  /**
   * Starts the budget now. Call it **before** the request whose success it stands for is sent: the store counts the
   * lease from a moment that is no earlier.
   */
  static startingNow(clock: Clock, budgetMs: number): Deadline {
    return new Deadline(clock, clock.monotonicMs() + budgetMs, clock.wallMs() + budgetMs);
  }

  passed(): boolean {
    return this.remainingMs() <= 0;
  }

  /** Milliseconds left by the clock that has advanced further; negative once passed. */
  remainingMs(): number {
    return Math.min(this.#monotonicMs - this.#clock.monotonicMs(), this.#wallMs - this.#clock.wallMs());
  }

  /** The monotonic end, for journals that compare processes of one host. */
  get monotonicEndMs(): number {
    return this.#monotonicMs;
  }
}
