import type { Scheduler } from "../engine/scheduler.ts";
import type { Seeded } from "../engine/seeded.ts";

const LATENCY_MS: readonly [number, number] = [3, 60];

/** One direction of a TCP connection: what is sent arrives in order, unless the wire is cut meanwhile. */
export class Wire {
  readonly #scheduler: Scheduler;
  readonly #seeded: Seeded;
  #lastArrivalMs = 0;
  #cut = false;

  constructor(scheduler: Scheduler, seeded: Seeded) {
    this.#scheduler = scheduler;
    this.#seeded = seeded;
  }

  get isCut(): boolean {
    return this.#cut;
  }

  cut(): void {
    this.#cut = true;
  }

  send(arrive: () => void): void {
    if (this.#cut) return;
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, this.#scheduler.nowMs + this.#seeded.skewed(...LATENCY_MS));
    this.#scheduler.at(this.#lastArrivalMs, () => {
      if (!this.#cut) arrive();
    });
  }
}
