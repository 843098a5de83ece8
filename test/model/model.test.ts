import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SMALL } from "./bounds.ts";
import { PLANTED_FAULTS } from "./planted.ts";
import { exploreAndPrint } from "./report.ts";
import { SHORT_RUNS } from "./runs.ts";
import { explore } from "./search.ts";

const MAX_STATES = 400_000;

describe("every order of events of two workers and one connection", { concurrency: 1 }, () => {
  for (const run of SHORT_RUNS) {
    it(run.name, { timeout: 120_000 }, async (t) => {
      const explored = await exploreAndPrint(run, (line) => t.diagnostic(line), MAX_STATES);
      assert.equal(explored.violation, undefined, explored.violation?.history.join("\n"));
      // A model in which nothing can happen breaks no rule either.
      assert.ok(explored.states > 10_000, `only ${explored.states} states`);
      // Expiry, the skews, the search for orphans a tick later, and the tick in which it is all done.
      const { leaseTicks, skewTicks } = run.bounds;
      assert.ok(explored.longestDarkTicks !== undefined && explored.longestDarkTicks <= leaseTicks + 2 * skewTicks + 2);
    });
  }

  it("is the same without the reductions", async () => {
    const bounds = { ...SMALL, lateRequests: 0, producer: false };
    const [reduced, full] = [await explore(bounds), await explore({ ...bounds, unreduced: true })];
    assert.equal(reduced.violation, undefined);
    assert.equal(full.violation, undefined);
    assert.ok(full.states > reduced.states);
    assert.equal(full.longestDarkTicks, reduced.longestDarkTicks);
  });
});

describe("the model finds planted faults", { concurrency: 1 }, () => {
  for (const { name, breaks, bounds } of PLANTED_FAULTS) {
    it(`${name}: ${breaks}`, { timeout: 60_000 }, async () => {
      const { violation } = await explore(bounds, { rules: new Set([breaks]), maxStates: MAX_STATES });
      assert.equal(violation?.rule, breaks, "no history breaks the rule");
      assert.ok(violation.history.length > 2);
    });
  }
});

describe("beyond what is promised", { concurrency: 1 }, () => {
  it("clocks that differ by more than skew and margin together let two workers act", async () => {
    const aheadTicks = SMALL.skewTicks + SMALL.marginTicks + 1;
    const bounds = { ...SMALL, aheadTicks, producer: false, lateRequests: 0 };
    const { violation } = await explore(bounds, { rules: new Set(["one-actor"]), maxStates: MAX_STATES });
    assert.equal(violation?.rule, "one-actor");
  });

  it("an id that is deleted and created again within its epochs' seconds may repeat one", async () => {
    const bounds = { ...SMALL, patientProducer: false, lateRequests: 0 };
    const { violation } = await explore(bounds, { rules: new Set(["epoch-falls"]), maxStates: MAX_STATES });
    assert.equal(violation?.rule, "epoch-falls");
    assert.ok(violation.history.some((line) => line.includes("deletes the connection")));
  });
});
