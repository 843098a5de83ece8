import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Deadline } from "../../../shared/lease/index.ts";
import { Holding } from "../../../worker/lease/holding.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const HOLDER = { connectionId: "c-1", owner: "task-1", epoch: 7n };

function held(budgetMs = 17_000): { readonly clock: VirtualClock; readonly holding: Holding } {
  const clock = new VirtualClock();
  return { clock, holding: new Holding(HOLDER, Deadline.startingNow(clock, budgetMs), 20_000) };
}

describe("a holding", () => {
  it("may act until its deadline, not at it", async () => {
    const { clock, holding } = held();
    await clock.advance(16_999);
    assert.equal(holding.mayAct(), true);
    await clock.advance(1);
    assert.equal(holding.mayAct(), false);
    assert.equal(holding.state, "acting", "nobody has fenced it yet, and still it may not act");
  });

  it("may act no longer when the wall clock alone has advanced as far, as after a suspension", () => {
    const { clock, holding } = held();
    clock.stepWall(17_000);
    assert.equal(holding.mayAct(), false);
  });

  it("is given no time by a wall clock that steps back", async () => {
    const { clock, holding } = held();
    clock.stepWall(-3_600_000);
    assert.equal(holding.mayAct(), true);
    await clock.advance(17_000);
    assert.equal(holding.mayAct(), false);
  });

  it("is extended by a renewal, counted from the moment the renewal began", async () => {
    const { clock, holding } = held();
    await clock.advance(5000);
    const deadline = Deadline.startingNow(clock, 17_000);
    await clock.advance(3000);
    holding.extend(deadline);
    assert.equal(holding.deadline.remainingMs(), 14_000);
  });

  it("never acts again once it was fenced, whatever renewal succeeds late", () => {
    const { clock, holding } = held();
    holding.fence();
    holding.extend(Deadline.startingNow(clock, 17_000));
    assert.equal(holding.mayAct(), false);
    assert.equal(holding.state, "fenced");
  });

  it("never acts again once it has ended, and stays ended", () => {
    const { clock, holding } = held();
    holding.end();
    holding.extend(Deadline.startingNow(clock, 17_000));
    holding.fence();
    assert.equal(holding.mayAct(), false);
    assert.equal(holding.state, "ended");
  });

  it("remembers the highest expiry that was ever sent", () => {
    const { holding } = held();
    holding.sending(25_000);
    holding.sending(24_000);
    assert.equal(holding.expiresAtMs, 25_000);
  });
});
