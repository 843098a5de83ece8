import type { FaultName } from "./faults.ts";

/** Within which limits a run draws, and what it lets happen. */
export interface Ranges {
  readonly name: string;
  /** Each machine's clock is off by at most this, in either direction. */
  readonly maxOffsetMs: number;
  /** How much faster or slower than true time a machine's monotonic clock runs, at most. */
  readonly maxDrift: number;
  /** How long faults go on. */
  readonly faultsMs: readonly [number, number];
  readonly meanFaultMs: number;
  readonly faults: Readonly<Partial<Record<FaultName, number>>>;
  readonly tasks: readonly [number, number];
  readonly connections: readonly [number, number];
  readonly guardBlind?: boolean;
}

const ALL_FAULTS: Readonly<Record<FaultName, number>> = {
  crash: 3,
  "crash-at-step": 4,
  "host-lost": 2,
  freeze: 4,
  "freeze-at-step": 4,
  "freeze-machine": 2,
  drain: 3,
  "drain-at-step": 3,
  "store-weather": 4,
  "store-outage": 2,
  "task-weather": 4,
  "task-cut-off": 3,
  credentials: 1,
  "index-lag": 2,
  "queue-weather": 3,
  "queue-down": 1,
  "stream-weather": 2,
  "stream-off": 1,
  "functions-off": 1,
  "upstream-closes": 3,
  "upstream-refuses": 2,
  "upstream-silent": 1,
  "upstream-stalls": 2,
  "half-open": 2,
  flood: 2,
  "wall-step": 1,
  "stray-hints": 3,
  "stop-start": 2,
  "new-settings": 1,
};

/** Inside these the invariants hold. */
export const STATED: Ranges = {
  name: "stated",
  maxOffsetMs: 950,
  maxDrift: 100e-6,
  faultsMs: [30_000, 110_000],
  meanFaultMs: 4000,
  faults: ALL_FAULTS,
  tasks: [2, 4],
  connections: [2, 5],
};
