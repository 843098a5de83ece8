import type { Seeded } from "../engine/seeded.ts";
import { CLEAR_QUEUE, CLEAR_STORE, CLEAR_STREAM, type StoreClimate } from "../world/weather.ts";
import type { FaultContext, FaultName } from "./fault.ts";

/** A store and a network that are hard to use, each in a way of its own. */
export function storm(seeded: Seeded): StoreClimate {
  const some = (most: number): number => (seeded.chance(0.5) ? seeded.between(0, most) : 0);
  return {
    cut: false,
    lostRequest: some(0.4),
    lostAnswer: some(0.6),
    latencyMs: [2, seeded.pick([50, 400, 1500, 4000])],
    late: some(0.3),
    lateMs: [1000, seeded.pick([4000, 15_000, 40_000])],
    throttle: some(0.8),
    serverError: some(0.3),
    applyThenError: some(0.4),
    credentials: 0,
    unprocessed: some(0.6),
  };
}

/** Things around the fleet, each with its way back. */
export const ON_SURROUNDINGS: Partial<
  Record<FaultName, (context: FaultContext) => [begin: () => void, end: () => void]>
> = {
  "store-weather": ({ fleet: { weather }, seeded }) => {
    const climate = storm(seeded);
    return [() => (weather.store = climate), () => (weather.store = CLEAR_STORE)];
  },
  "store-outage": ({ fleet: { weather } }) => [
    () => (weather.store = { ...CLEAR_STORE, serverError: 1 }),
    () => (weather.store = CLEAR_STORE),
  ],
  "index-lag": ({ fleet: { store } }) => [
    () => (store.db.indexLagMs = (random) => 15_000 * random() ** 2),
    () => (store.db.indexLagMs = 0),
  ],
  "queue-weather": ({ fleet: { weather }, seeded }) => [
    () =>
      (weather.queue = {
        ...CLEAR_QUEUE,
        lost: seeded.pick([0, 0.3, 1]),
        duplicated: seeded.pick([0, 0.5]),
        delayed: seeded.pick([0, 0.5]),
        failing: seeded.pick([0, 0.2]),
      }),
    () => (weather.queue = CLEAR_QUEUE),
  ],
  "queue-down": ({ fleet: { weather } }) => [
    () => (weather.queue = { ...CLEAR_QUEUE, down: true }),
    () => (weather.queue = CLEAR_QUEUE),
  ],
  "stream-weather": ({ fleet: { weather } }) => [
    () => (weather.stream = { off: false, repeated: 0.5, latencyMs: [500, 25_000] }),
    () => (weather.stream = CLEAR_STREAM),
  ],
  "stream-off": ({ fleet: { weather } }) => [
    () => (weather.stream = { ...CLEAR_STREAM, off: true }),
    () => (weather.stream = CLEAR_STREAM),
  ],
  "functions-off": ({ fleet: { weather } }) => [
    () => (weather.functionsOff = true),
    () => (weather.functionsOff = false),
  ],
};
