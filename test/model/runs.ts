import { SMALL, type Bounds } from "./bounds.ts";

export interface Run {
  readonly name: string;
  readonly bounds: Bounds;
}

/** Each clock is off by the skew at most: two of them agree, or differ by it, or are off in opposite directions. */
const AGREE = 0;
const SKEWED = SMALL.skewTicks;
const OPPOSITE = 2 * SMALL.skewTicks;

/** What `npm test` explores. */
export const SHORT_RUNS: readonly Run[] = [
  ...[AGREE, OPPOSITE].map((aheadTicks) => ({
    name: `no late request, with a producer; clocks differ by ${aheadTicks}`,
    bounds: { ...SMALL, aheadTicks, lateRequests: 0 },
  })),
  {
    name: "one late request, always STARTED; clocks differ by 0",
    bounds: { ...SMALL, producer: false, sentPerTick: 1 },
  },
];

/** What `main.ts` explores besides. The last ones take long, and up to some GB of memory. */
export const LONG_RUNS: readonly Run[] = [
  {
    name: `no late request, with a producer; clocks differ by ${SKEWED}`,
    bounds: { ...SMALL, aheadTicks: SKEWED, lateRequests: 0 },
  },
  {
    name: "no late request, with a producer and checkpoints; clocks differ by 0",
    bounds: { ...SMALL, lateRequests: 0, checkpoints: true, sentPerTick: 1 },
  },
  ...[SKEWED, OPPOSITE].map((aheadTicks) => ({
    name: `one late request, always STARTED; clocks differ by ${aheadTicks}`,
    bounds: { ...SMALL, aheadTicks, producer: false, sentPerTick: 1 },
  })),
  ...[AGREE, SKEWED, OPPOSITE].map((aheadTicks) => ({
    name: `one late request, with a producer; clocks differ by ${aheadTicks}`,
    bounds: { ...SMALL, aheadTicks, sentPerTick: 1 },
  })),
  ...[AGREE, SKEWED, OPPOSITE].map((aheadTicks) => ({
    name: `one late request, always STARTED, two renewals within a tick; clocks differ by ${aheadTicks}`,
    bounds: { ...SMALL, aheadTicks, producer: false },
  })),
  {
    name: "one late request, always STARTED, with checkpoints; clocks differ by 0",
    bounds: { ...SMALL, producer: false, checkpoints: true, sentPerTick: 1 },
  },
  {
    name: "two late requests, two dead names, always STARTED; clocks differ by 0",
    bounds: { ...SMALL, producer: false, lateRequests: 2, deadNames: 2, sentPerTick: 1 },
  },
];
