import type { Clock } from "../shared/clock.ts";

/** Spreads a herd: `perSecond` on average, at most `burst` at once. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #filledAtMs: number;

  constructor(clock: Clock, perSecond: number, burst: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
    this.#filledAtMs = clock.monotonicMs();
  }

  /** Whole tokens there are now. */
  available(): number {
    this.#fill();
    return Math.floor(this.#tokens);
  }

  /** Takes `n` tokens, even into debt: what was promised before may be used before it has dripped in. */
  take(n: number): void {
    this.#fill();
    this.#tokens -= n;
  }

  giveBack(n: number): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + n);
  }

  /** Milliseconds until one whole token is there. */
  waitMs(): number {
    this.#fill();
    return this.#tokens >= 1 ? 0 : ((1 - this.#tokens) / this.#perSecond) * 1000;
  }

  #fill(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((nowMs - this.#filledAtMs) / 1000) * this.#perSecond);
    this.#filledAtMs = nowMs;
  }
}
