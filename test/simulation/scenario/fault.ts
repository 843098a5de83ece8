import type { Seeded } from "../engine/seeded.ts";
import type { Fleet } from "../world/fleet.ts";

/** One kind of thing that goes wrong. */
export type FaultName =
  | "crash"
  | "crash-at-step"
  | "host-lost"
  | "freeze"
  | "freeze-at-step"
  | "freeze-machine"
  | "drain"
  | "drain-at-step"
  | "store-weather"
  | "store-outage"
  | "task-weather"
  | "task-cut-off"
  | "credentials"
  | "index-lag"
  | "queue-weather"
  | "queue-down"
  | "stream-weather"
  | "stream-off"
  | "functions-off"
  | "upstream-closes"
  | "upstream-refuses"
  | "upstream-silent"
  | "upstream-stalls"
  | "half-open"
  | "flood"
  | "wall-step"
  | "stray-hints"
  | "stop-start"
  | "recreate"
  | "suspend"
  | "new-settings";

export interface FaultContext {
  readonly fleet: Fleet;
  readonly seeded: Seeded;
  /** When all of it ends; nothing may last longer. */
  readonly endMs: number;
}

/** Begins now and ends at a drawn time, or with all faults. */
export function lasting(
  context: FaultContext,
  lowMs: number,
  highMs: number,
  begin: () => void,
  end: () => void,
): void {
  const { fleet, seeded, endMs } = context;
  begin();
  fleet.scheduler.at(Math.min(endMs, fleet.scheduler.nowMs + seeded.between(lowMs, highMs)), end);
}
