import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Deadline } from "../../../shared/lease/index.ts";
import { SteppingClock } from "../../support/stepping-clock.ts";

const BUDGET_MS = 17_000;

describe("Deadline", () => {
  const setUp = () => {
    const clock = new SteppingClock(5000, 1_700_000_000_000);
    return { clock, deadline: Deadline.startingNow(clock, BUDGET_MS) };
  };

  it("passes exactly when the budget is used up", () => {
    const { clock, deadline } = setUp();
    assert.equal(deadline.remainingMs(), BUDGET_MS);
    clock.pass(BUDGET_MS - 1);
    assert.deepEqual([deadline.passed(), deadline.remainingMs()], [false, 1]);
    clock.pass(1);
    assert.deepEqual([deadline.passed(), deadline.remainingMs()], [true, 0]);
    clock.pass(500);
    assert.deepEqual([deadline.passed(), deadline.remainingMs()], [true, -500]);
  });

  it("passes by the monotonic clock alone, whatever was done to the wall clock", () => {
    const { clock, deadline } = setUp();
    clock.stepWall(-3_600_000);
    assert.equal(deadline.passed(), false);
    clock.pass(BUDGET_MS);
    assert.equal(deadline.passed(), true);
  });

  it("passes by the wall clock alone, where a suspended machine stopped the monotonic one", () => {
    const { clock, deadline } = setUp();
    clock.stepWall(BUDGET_MS - 1);
    assert.equal(deadline.passed(), false);
    clock.stepWall(1);
    assert.equal(deadline.passed(), true);
  });

  it("a forward step of the wall clock costs time and never gives any", () => {
    const { clock, deadline } = setUp();
    clock.stepWall(10_000);
    assert.equal(deadline.remainingMs(), 7000);
    clock.stepWall(-10_000);
    assert.equal(deadline.remainingMs(), BUDGET_MS);
    clock.stepWall(-10_000);
    assert.equal(deadline.remainingMs(), BUDGET_MS, "a step back must not lengthen it");
  });

  it("a budget of nothing has passed at once", () => {
    const clock = new SteppingClock(0, 0);
    assert.equal(Deadline.startingNow(clock, 0).passed(), true);
    assert.equal(Deadline.startingNow(clock, -1).passed(), true);
  });

  it("tells its monotonic end, which all processes of one host can compare", () => {
    assert.equal(setUp().deadline.monotonicEndMs, 5000 + BUDGET_MS);
  });

  it("has always passed once either clock has advanced by the budget, over any steps", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("pass" as const), ms: fc.nat(8000) }),
      fc.record({ kind: fc.constant("stepMonotonic" as const), ms: fc.nat(8000) }),
      fc.record({ kind: fc.constant("stepWall" as const), ms: fc.integer({ min: -30_000, max: 30_000 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const { clock, deadline } = setUp();
        for (const { kind, ms } of steps) {
          clock[kind](ms);
          const advancedMs = Math.max(clock.monotonicMs() - 5000, clock.wallMs() - 1_700_000_000_000);
          assert.equal(deadline.passed(), advancedMs >= BUDGET_MS);
          assert.equal(deadline.remainingMs(), BUDGET_MS - advancedMs);
        }
      }),
    );
  });
});
