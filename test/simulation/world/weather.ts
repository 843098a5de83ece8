/** How the network between a process and the store behaves, and the store itself; probabilities are per attempt. */
export interface StoreClimate {
  /** Nothing passes in either direction. */
  readonly cut: boolean;
  readonly lostRequest: number;
  readonly lostAnswer: number;
  /** One way, ms; mostly near the low end. */
  readonly latencyMs: readonly [number, number];
  /** A request that is on its way for so long that its sender gave up long ago. */
  readonly late: number;
  readonly lateMs: readonly [number, number];
  readonly throttle: number;
  readonly serverError: number;
  readonly applyThenError: number;
  readonly credentials: number;
  /** Share of a batch's entries that are given back. */
  readonly unprocessed: number;
}

export const CLEAR_STORE: StoreClimate = {
  cut: false,
  lostRequest: 0,
  lostAnswer: 0,
  latencyMs: [2, 30],
  late: 0,
  lateMs: [1000, 20_000],
  throttle: 0,
  serverError: 0,
  applyThenError: 0,
  credentials: 0,
  unprocessed: 0,
};

export interface QueueClimate {
  readonly down: boolean;
  readonly lost: number;
  readonly duplicated: number;
  readonly delayed: number;
  readonly delayMs: readonly [number, number];
  readonly failing: number;
}

export const CLEAR_QUEUE: QueueClimate = {
  down: false,
  lost: 0,
  duplicated: 0,
  delayed: 0,
  delayMs: [500, 20_000],
  failing: 0,
};

export interface StreamClimate {
  readonly off: boolean;
  readonly repeated: number;
  readonly latencyMs: readonly [number, number];
}

export const CLEAR_STREAM: StreamClimate = { off: false, repeated: 0, latencyMs: [100, 600] };

export const PRODUCER = "producer";

/** What is wrong outside the fleet, now. */
export class Weather {
  store: StoreClimate = CLEAR_STORE;
  queue: QueueClimate = CLEAR_QUEUE;
  stream: StreamClimate = CLEAR_STREAM;
  /** Scheduled functions are not invoked. */
  functionsOff = false;
  /** Climates of single places, by name: a task, or the functions. */
  readonly #local = new Map<string, StoreClimate>();

  storeOf(place: string): StoreClimate {
    const climate = this.#local.get(place) ?? this.store;
    // A wish that overtakes a later one would be the producer's own mistake, and change what the run expects.
    return place === PRODUCER ? { ...climate, late: 0, latencyMs: CLEAR_STORE.latencyMs } : climate;
  }

  setLocal(place: string, climate: StoreClimate | undefined): void {
    if (climate === undefined) this.#local.delete(place);
    else this.#local.set(place, climate);
  }

  clear(): void {
    this.store = CLEAR_STORE;
    this.queue = CLEAR_QUEUE;
    this.stream = CLEAR_STREAM;
    this.functionsOff = false;
    this.#local.clear();
  }
}
