import type { Scheduler } from "../engine/scheduler.ts";

/**
 * The write units that one partition key of an index takes per second: 1,000 at DynamoDB, for `by_state`/STARTED, where
 * every renewal costs two. Beyond it writes to the base table are throttled.
 */
export class IndexCap {
  readonly #scheduler: Scheduler;
  readonly #unitsPerSecond: number;
  #units: number;
  #filledAtMs = 0;

  constructor(scheduler: Scheduler, unitsPerSecond: number) {
    this.#scheduler = scheduler;
    this.#unitsPerSecond = unitsPerSecond;
    this.#units = unitsPerSecond;
  }

  /** False: throttled. What a write really takes is known only afterwards, so the balance may fall below zero. */
  admits(): boolean {
    const nowMs = this.#scheduler.nowMs;
    const dripped = ((nowMs - this.#filledAtMs) / 1000) * this.#unitsPerSecond;
    this.#units = Math.min(this.#unitsPerSecond, this.#units + dripped);
    this.#filledAtMs = nowMs;
    return this.#units > 0;
  }

  spend(units: number): void {
    this.#units -= units;
  }
}
