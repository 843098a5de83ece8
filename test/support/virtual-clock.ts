import { setImmediate as nextTurn } from "node:timers/promises";
import type { Cancel, Clock } from "../../shared/clock.ts";

interface Timer {
  readonly dueMs: number;
  readonly fn: () => void;
}

export interface VirtualClockOptions {
  /** First reading of the wall clock, ms since the epoch. */
  readonly wallMs?: number;
  readonly monotonicMs?: number;
  /** Turns of the real event loop that are granted after each timer; more only where promise chains do real I/O. */
  readonly settleTurns?: number;
}

/**
 * Time that moves only when a test says so. Timers fire one by one in the order of their due times (equal times: in the
 * order they were set), and between two of them all promise chains run as far as they can.
 */
export class VirtualClock implements Clock {
  readonly #settleTurns: number;
  readonly #timers: Timer[] = [];
  #monotonicMs: number;
  #wallOffsetMs: number;
  #advancing = false;

  constructor(options: VirtualClockOptions = {}) {
    const { wallMs = Date.UTC(2026, 0, 1), monotonicMs = 0, settleTurns = 3 } = options;
    this.#monotonicMs = monotonicMs;
    this.#wallOffsetMs = wallMs - monotonicMs;
    this.#settleTurns = settleTurns;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  wallMs(): number {
    return this.#monotonicMs + this.#wallOffsetMs;
  }

  after(delayMs: number, fn: () => void): Cancel {
    if (!Number.isFinite(delayMs)) throw new Error(`after: delayMs must be a finite number, not ${delayMs}`);
    const timer: Timer = { dueMs: this.#monotonicMs + Math.max(0, delayMs), fn };
    const later = this.#timers.findIndex((other) => other.dueMs > timer.dueMs);
    this.#timers.splice(later < 0 ? this.#timers.length : later, 0, timer);
    return () => {
      const at = this.#timers.indexOf(timer);
      if (at >= 0) this.#timers.splice(at, 1);
    };
  }

  /** Timers that are set and have neither fired nor been cancelled. */
  get pendingTimers(): number {
    return this.#timers.length;
  }

  /** Moves the wall clock alone, in either direction. */
  stepWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  /**
   * Another machine in the same time: the same timers and the same monotonic clock, a wall clock of its own that differs
   * by `wallOffsetMs` and can be stepped by itself.
   */
  machine(wallOffsetMs = 0): Clock & { stepWall(ms: number): void } {
    let offsetMs = wallOffsetMs;
    return {
      monotonicMs: () => this.monotonicMs(),
      wallMs: () => this.wallMs() + offsetMs,
      after: (delayMs, fn) => this.after(delayMs, fn),
      stepWall: (ms) => {
        offsetMs += ms;
      },
    };
  }

  /** Lets all promise chains run as far as they can without time passing. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < this.#settleTurns; turn++) await nextTurn();
  }

  /** Moves time forward by `ms`, firing what falls due on the way, timers set meanwhile included. */
  async advance(ms: number): Promise<void> {
    await this.#run(this.#monotonicMs + checkedDuration("advance", ms), () => false);
  }

  /**
   * Moves time from timer to timer until `condition` holds; returns the ms that took. Rejects when it still does not hold
   * after `maxMs`.
   */
  async advanceUntil(condition: () => boolean, maxMs: number): Promise<number> {
    const startMs = this.#monotonicMs;
    const met = await this.#run(startMs + checkedDuration("advanceUntil", maxMs), condition);
    if (!met) throw new Error(`advanceUntil: the condition does not hold after ${maxMs} ms of virtual time`);
    return this.#monotonicMs - startMs;
  }

  /** Returns whether `done` ended the run; otherwise time stands at `limitMs`. */
  async #run(limitMs: number, done: () => boolean): Promise<boolean> {
    // Two runs at once would fire timers out of order, and a run awaited inside a timer's callback would never end.
    if (this.#advancing) throw new Error("the virtual clock is already being advanced");
    this.#advancing = true;
    try {
      await this.settle();
      for (;;) {
        if (done()) return true;
        const next = this.#timers[0];
        if (next === undefined || next.dueMs > limitMs) break;
        this.#timers.shift();
        this.#monotonicMs = Math.max(this.#monotonicMs, next.dueMs);
        next.fn();
        await this.settle();
      }
      this.#monotonicMs = Math.max(this.#monotonicMs, limitMs);
      return done();
    } finally {
      this.#advancing = false;
    }
  }
}

function checkedDuration(method: string, ms: number): number {
  if (!Number.isFinite(ms) || ms < 0) throw new Error(`${method}: needs a number of milliseconds >= 0, not ${ms}`);
  return ms;
}
