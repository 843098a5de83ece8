import type { Scheduler } from "./scheduler.ts";

/** First instant of every simulation, ms since the Unix epoch: the true time, which the store's clock shows. */
export const TRUE_EPOCH_MS = Date.UTC(2026, 0, 1);

export interface MachineClockSettings {
  /** The wall clock's distance from true time. */
  readonly offsetMs: number;
  /** How fast the monotonic clock runs; 1 is true. */
  readonly rate: number;
  /** First reading of the monotonic clock: its origin differs from machine to machine. */
  readonly monotonicMs: number;
}

/** The clocks of one machine, as functions of true time. */
export class Machine {
  readonly #scheduler: Scheduler;
  readonly #bootedMs: number;
  readonly #rate: number;
  readonly #firstMonotonicMs: number;
  #offsetMs: number;
  #asleepMs = 0;
  #asleepSinceMs: number | undefined;

  constructor(scheduler: Scheduler, settings: MachineClockSettings) {
    this.#scheduler = scheduler;
    this.#bootedMs = scheduler.nowMs;
    this.#rate = settings.rate;
    this.#firstMonotonicMs = settings.monotonicMs;
    this.#offsetMs = settings.offsetMs;
  }

  get rate(): number {
    return this.#rate;
  }

  monotonicMs(): number {
    const nowMs = this.#asleepSinceMs ?? this.#scheduler.nowMs;
    return this.#firstMonotonicMs + (nowMs - this.#bootedMs - this.#asleepMs) * this.#rate;
  }

  wallMs(): number {
    return TRUE_EPOCH_MS + this.#scheduler.nowMs + this.#offsetMs;
  }

  stepWall(ms: number): void {
    this.#offsetMs += ms;
  }

  /** From now on the monotonic clock stands still, as on a suspended machine. */
  suspend(): void {
    this.#asleepSinceMs ??= this.#scheduler.nowMs;
  }

  resume(): void {
    if (this.#asleepSinceMs === undefined) return;
    this.#asleepMs += this.#scheduler.nowMs - this.#asleepSinceMs;
    this.#asleepSinceMs = undefined;
  }
}
