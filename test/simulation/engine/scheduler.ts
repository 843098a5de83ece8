import type { Cancel } from "../../../shared/clock.ts";

interface Event {
  readonly atMs: number;
  readonly order: number;
  fn: (() => void) | undefined;
}

/**
 * True time, and everything that is to happen in it. Events run one by one in the order of their times (equal times: in
 * the order they were set), and between two of them all promise chains run as far as they can.
 */
export class Scheduler {
  /** A binary heap. */
  readonly #heap: Event[] = [];
  #order = 0;
  #nowMs = 0;
  #ran = 0;

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Events that have run. */
  get ran(): number {
    return this.#ran;
  }

  at(atMs: number, fn: () => void): Cancel {
    if (!Number.isFinite(atMs)) throw new Error(`an event needs a finite time, not ${atMs}`);
    const event: Event = { atMs: Math.max(atMs, this.#nowMs), order: this.#order++, fn };
    this.#push(event);
    return () => {
      event.fn = undefined;
    };
  }

  in(delayMs: number, fn: () => void): Cancel {
    return this.at(this.#nowMs + Math.max(0, delayMs), fn);
  }

  /** Runs until the time is reached or `done` holds; returns whether `done` ended it. */
  async runUntil(limitMs: number, done: () => boolean): Promise<boolean> {
    await settle();
    for (;;) {
      if (done()) return true;
      const event = this.#heap[0];
      if (event === undefined || event.atMs > limitMs) break;
      this.#pop();
      if (event.fn === undefined) continue;
      this.#nowMs = event.atMs;
      this.#ran++;
      event.fn();
      await settle();
    }
    this.#nowMs = Math.max(this.#nowMs, limitMs);
    return done();
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || before(above, event)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const first = heap[left];
      if (first === undefined) break;
      const second = heap[left + 1];
      const [child, smaller] = second !== undefined && before(second, first) ? [left + 1, second] : [left, first];
      if (before(last, smaller)) break;
      heap[at] = smaller;
      at = child;
    }
    heap[at] = last;
  }
}

function before(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** One turn of the real event loop: all promise chains run to where they wait for an event of the simulation. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
