import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Seeded } from "./engine/seeded.ts";
import type { FaultName } from "./scenario/fault.ts";
import { trap } from "./scenario/on-tasks.ts";
import { QUIET } from "./scenario/ranges.ts";
import { simulate, type SimulationResult } from "./simulation.ts";

/** Steps of a worker from its start until it has taken, opened, stored and renewed: every further one is like these. */
const STEPS = 160;
/** Every step for a crash; for the others one in so many, each kind at other ones. */
const STRIDES: readonly (readonly [fault: FaultName, first: number, stride: number])[] = [
  ["crash", 1, 1],
  ["host-lost", 1, 4],
  ["drain", 2, 4],
  ["freeze", 3, 4],
];

function hitAtStep(fault: FaultName, left: number, when: "before" | "after"): Promise<SimulationResult> {
  return simulate({
    seed: 1,
    ranges: QUIET,
    prepare: (fleet) => {
      const context = { fleet, seeded: new Seeded(`${fault}/${left}/${when}`), endMs: QUIET.faultsMs[1] };
      fleet.scheduler.in(0, () => {
        const [task] = fleet.tasks;
        if (task !== undefined) trap(context, task, fault, left, when);
      });
    },
  });
}

describe("a fault at any step of a worker's life", { concurrency: 1 }, () => {
  for (const [fault, first, stride] of STRIDES) {
    it(`${fault}, before and after the step has its effect`, async () => {
      let sprung = 0;
      for (let left = first; left <= STEPS; left += stride) {
        for (const when of ["before", "after"] as const) {
          const result = await hitAtStep(fault, left, when);
          const text = `${when} step ${left}: ${result.violation?.rule ?? ""}: ${result.violation?.text ?? ""}`;
          assert.equal(result.violation, undefined, [text, ...result.history(60)].join("\n"));
          sprung += result.tally.counts.get(`sprung: ${fault}`) ?? 0;
        }
      }
      assert.ok(sprung > STEPS / stride, `the fault hit only ${sprung} times`);
    });
  }
});
