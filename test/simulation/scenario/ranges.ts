import type { FaultName } from "./fault.ts";

/** Within which limits a run draws, and what it lets happen. */
export interface Ranges {
  readonly name: string;
  /** Each machine's clock is off by at most this, in either direction. */
  readonly maxOffsetMs: number;
  /** Each clock is off by exactly that much, one way or the other. */
  readonly extremeOffsets?: boolean;
  /** How much faster or slower than true time a machine's monotonic clock runs, at most. */
  readonly maxDrift: number;
  /** How long faults go on. */
  readonly faultsMs: readonly [number, number];
  readonly meanFaultMs: number;
  readonly faults: Readonly<Partial<Record<FaultName, number>>>;
  readonly tasks: readonly [number, number];
  readonly connections: readonly [number, number];
  /** No worker can find its own clock wrong. */
  readonly guardBlind?: boolean;
  /** Only what holds at every step is checked: with these clocks a fleet may rightly take nothing. */
  readonly withoutRecovery?: boolean;
}

const ALL_FAULTS: Readonly<Partial<Record<FaultName, number>>> = {
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
  recreate: 1,
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

/** The same limits, with the fault kinds that bring a lease to its very end while somebody else asks for it. */
export const AT_THE_DEADLINE: Ranges = {
  ...STATED,
  name: "at-the-deadline",
  extremeOffsets: true,
  faultsMs: [60_000, 110_000],
  meanFaultMs: 2000,
  faults: { freeze: 3, "freeze-at-step": 3, "task-cut-off": 5, "task-weather": 2, "stray-hints": 6 },
  tasks: [3, 4],
  connections: [2, 4],
};

/** Processes that stop in the middle of a request and go on when somebody else has taken over. */
export const FROZEN_IN_FLIGHT: Ranges = {
  ...STATED,
  name: "frozen-in-flight",
  faultsMs: [60_000, 110_000],
  meanFaultMs: 3000,
  faults: { "freeze-at-step": 6, "store-weather": 2 },
  tasks: [3, 4],
  connections: [3, 5],
};

/** One task that loses and takes the same leases again while its own earlier writes are still on their way. */
export const SAME_OWNER: Ranges = {
  ...STATED,
  name: "same-owner",
  meanFaultMs: 2500,
  faults: { "task-weather": 5, "store-weather": 5, "stop-start": 6, "stray-hints": 3, freeze: 1 },
  tasks: [1, 1],
  connections: [1, 3],
};

/** Nothing goes wrong by itself: for faults that a test chooses. */
export const QUIET: Ranges = {
  ...STATED,
  name: "quiet",
  faultsMs: [35_000, 35_000],
  faults: {},
  tasks: [2, 2],
  connections: [3, 3],
};

/** Clocks that differ by more than skew and margin together, and nothing that could tell: here it must break. */
export const BEYOND_SKEW: Ranges = { ...AT_THE_DEADLINE, name: "beyond-skew", maxOffsetMs: 3500, guardBlind: true };

/** The same clocks, but answers of the store carry its time: no worker that is proven wrong takes anything. */
export const BEYOND_SKEW_GUARDED: Ranges = {
  ...AT_THE_DEADLINE,
  name: "beyond-skew-guarded",
  maxOffsetMs: 3500,
  withoutRecovery: true,
};

/** Machines that are suspended, so that the monotonic clock which carries the anchored time stands still. */
export const SUSPENDED: Ranges = {
  ...AT_THE_DEADLINE,
  name: "suspended",
  faults: { ...AT_THE_DEADLINE.faults, suspend: 5 },
};

/** Those that a user can run by name. */
export const NAMED_RANGES: ReadonlyMap<string, Ranges> = new Map(
  [STATED, AT_THE_DEADLINE, FROZEN_IN_FLIGHT, SAME_OWNER, SUSPENDED, BEYOND_SKEW, BEYOND_SKEW_GUARDED].map((ranges) => [
    ranges.name,
    ranges,
  ]),
);
