import { simulate, type SimulationOptions, type SimulationResult } from "../simulation.ts";
import type { Fleet } from "../world/fleet.ts";
import type { PlantedFault } from "./faults.ts";

/** A run with the mistake in the code. Methods are replaced for its time only: nothing else may run beside it. */
export async function simulateWith(planted: PlantedFault, options: SimulationOptions): Promise<SimulationResult> {
  let current: Fleet | undefined;
  const undo = planted.install?.(() => {
    if (current === undefined) throw new Error("the fleet is not there yet");
    return current;
  });
  try {
    return await simulate({ ...options, ...planted.options, prepare: (fleet) => (current = fleet) });
  } finally {
    undo?.();
  }
}

/** Seeds tried from a fault's own on: any change of the code draws all runs anew, and few faults show in every one. */
const SEEDS = 150;

/** The first run from the fault's own seed on that breaks a rule; undefined when none does. */
export async function firstCaught(planted: PlantedFault): Promise<SimulationResult | undefined> {
  for (let seed = planted.seed; seed < planted.seed + SEEDS; seed++) {
    const result = await simulateWith(planted, { seed });
    if (result.violation !== undefined) return result;
  }
  return undefined;
}
