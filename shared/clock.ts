/** Cancels a timer that has not fired yet; calling it again, or after it fired, does nothing. */
export type Cancel = () => void;

/**
 * The only source of time. Every part receives one, so that tests and the simulation run the same code over virtual time.
 *
 * The two readings are independent on purpose: the wall clock may step in either direction, and a suspended machine may
 * stop the monotonic one.
 */
export interface Clock {
  /** Milliseconds since an arbitrary origin that is common to all processes of one host; never falls. */
  monotonicMs(): number;
  /** Milliseconds since the Unix epoch, as this machine believes; may step. */
  wallMs(): number;
  /** Runs `fn` once, no sooner than `delayMs` from now. */
  after(delayMs: number, fn: () => void): Cancel;
}

/** The clock of the running machine. */
export class SystemClock implements Clock {
  monotonicMs(): number {
    // CLOCK_MONOTONIC, which all processes of the host share; performance.now() has an origin of its own per process.
    return Number(process.hrtime.bigint()) / 1e6;
  }

  wallMs(): number {
    return Date.now();
  }

  after(delayMs: number, fn: () => void): Cancel {
    const dueMs = this.monotonicMs() + Math.max(0, delayMs);
    // Node's timers cut fractions off, may fire a moment early, and take a delay beyond their range for 1 ms.
    const arm = (leftMs: number): NodeJS.Timeout => setTimeout(ring, Math.min(Math.ceil(leftMs), MAX_TIMER_MS));
    const ring = (): void => {
      const leftMs = dueMs - this.monotonicMs();
      if (leftMs > 0) timer = arm(leftMs);
      else fn();
    };
    // What is overdue is due now; Node would warn of it on the standard error.
    let timer = arm(Math.max(0, delayMs));
    return () => clearTimeout(timer);
  }
}

/** The longest delay that a timer of Node takes. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Wall time anchored once and carried forward by the monotonic clock. What is written to the table as an expiry comes from
 * here, so that a step of the wall clock never moves a lease.
 */
export class AnchoredClock {
  readonly #clock: Clock;
  #anchor: ClockAnchor;
  /** Wall minus anchored time that says nothing: the smallest difference since the anchor was set. */
  #knownLeadMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#anchor = { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() };
  }

  /** Integer milliseconds since the Unix epoch. */
  nowMs(): number {
    return Math.floor(this.#anchor.wallMs + (this.#clock.monotonicMs() - this.#anchor.monotonicMs));
  }

  /**
   * By how much the wall clock has run ahead of this one, ms; 0 or more. Either somebody set the wall clock forward, or
   * the machine was suspended and its monotonic clock stood still: then this clock is late by so much. Nobody can tell
   * which without asking another clock.
   */
  leapMs(): number {
    const leadMs = this.#clock.wallMs() - this.nowMs();
    // A wall clock that was set back must not hide a suspension of the same length.
    this.#knownLeadMs = Math.min(this.#knownLeadMs, leadMs);
    return leadMs - this.#knownLeadMs;
  }

  /** No earlier than the true time, as far as this machine can know: the end of a lease that is written must not be early. */
  latestMs(): number {
    return Math.floor(this.nowMs() + this.leapMs());
  }

  get anchor(): ClockAnchor {
    return this.#anchor;
  }

  /** Takes the machine's wall clock as it is now. Only for a process that holds no lease: written expiries would jump. */
  reanchor(): void {
    this.#anchor = { wallMs: this.#clock.wallMs(), monotonicMs: this.#clock.monotonicMs() };
    this.#knownLeadMs = 0;
  }

  /** Goes back to a former anchor, and takes the wall clock's lead over it for an error of the wall clock. */
  restore(anchor: ClockAnchor): void {
    this.#anchor = anchor;
    this.#knownLeadMs = this.#clock.wallMs() - this.nowMs();
  }
}

/** A moment as both clocks of a machine showed it. */
export interface ClockAnchor {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** Resolves after `delayMs`, or as soon as `signal` aborts; never rejects. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) {
      resolve();
      return;
    }
    const finish = (): void => {
      cancel();
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const cancel = clock.after(delayMs, finish);
    signal?.addEventListener("abort", finish, { once: true });
  });
}
