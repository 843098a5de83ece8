import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { planChaos, type ChaosPlanOptions, type PlannedFault } from "../../../local/chaos/plan.ts";
import { kindOf } from "../../../local/chaos/wording.ts";

const MINUTE: ChaosPlanOptions = { seed: 1, workers: 3, lengthMs: 43_667, leaseMs: 20_000 };
const TEN: ChaosPlanOptions = { ...MINUTE, lengthMs: 583_667 };

const options = fc.record({
  seed: fc.integer({ min: 0, max: 2 ** 31 }),
  workers: fc.integer({ min: 2, max: 16 }),
  lengthMs: fc.integer({ min: 0, max: 900_000 }),
  leaseMs: fc.integer({ min: 5_000, max: 60_000 }),
});

describe("the plan of faults", () => {
  it("is the same for the same options, and another for another seed", () => {
    fc.assert(
      fc.property(options, (given) => {
        const plan = planChaos(given);
        assert.deepEqual(planChaos({ ...given }), plan);
        if (plan.length > 0) assert.notDeepEqual(planChaos({ ...given, seed: given.seed + 1 }), plan);
      }),
      { numRuns: 200 },
    );
  });

  it("keeps within its length, in order, and aims at workers that may be there", () => {
    fc.assert(
      fc.property(options, (given) => {
        let lastMs = 0;
        planChaos(given).forEach((fault, at) => {
          assert.equal(fault.id, at + 1);
          assert.ok(fault.atMs >= lastMs && fault.forMs >= 0, JSON.stringify(fault));
          assert.ok(fault.atMs + fault.forMs <= given.lengthMs + 1, JSON.stringify(fault));
          const rank = rankOf(fault);
          assert.ok(rank === undefined || (rank >= 0 && rank < given.workers), JSON.stringify(fault));
          lastMs = fault.atMs;
        });
      }),
      { numRuns: 200 },
    );
  });

  it("begins every minute with something that outlasts a lease", () => {
    for (let seed = 0; seed < 50; seed += 1) {
      const long = planChaos({ ...MINUTE, seed }).filter(({ forMs }) => forMs > MINUTE.leaseMs + 1_000);
      assert.ok(
        long.some((fault) => kindOf(fault) === "freeze" || rankOf(fault) !== undefined),
        `seed ${seed}`,
      );
    }
  });

  it("has every kind of fault in ten minutes, several at once", () => {
    const plan = planChaos(TEN);
    const kinds = new Set(plan.map(kindOf));
    assert.deepEqual([...kinds].sort(), [
      "black-hole",
      "crash",
      "cut",
      "freeze",
      "half-open",
      "kill",
      "latency",
      "reset",
      "slow",
      "term",
      "upstream restart",
      "upstream stall",
    ]);
    const places = new Set(plan.flatMap((fault) => (fault.does === "network" ? [fault.place.at] : [])));
    assert.deepEqual([...places].sort(), ["dynamodb", "functions", "sqs", "upstream"]);
    const atOnce = plan.map((one) => plan.filter((other) => on(other, one.atMs)).length);
    assert.ok(Math.max(...atOnce) >= 4, `at once: ${atOnce.join(" ")}`);
  });

  it("is empty where nothing fits", () => {
    assert.deepEqual(planChaos({ ...MINUTE, lengthMs: 10_000 }), []);
  });
});

function on({ atMs, forMs }: PlannedFault, timeMs: number): boolean {
  return atMs <= timeMs && timeMs < atMs + forMs;
}

function rankOf(fault: PlannedFault): number | undefined {
  if (fault.does === "process") return fault.rank;
  return fault.does === "network" && "rank" in fault.place ? fault.place.rank : undefined;
}
