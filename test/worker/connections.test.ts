import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VirtualClock } from "../support/virtual-clock.ts";
import { Intake } from "./support/intake.ts";

async function holding(maxConnections: number, ...ids: string[]): Promise<Intake<VirtualClock>> {
  const intake = new Intake(new VirtualClock(), { maxConnections });
  await intake.seed(ids);
  for (const id of ids) assert.equal(await intake.acquirer.tryAcquire(id), "held");
  return intake;
}

describe("the connections of a worker", () => {
  it("count against the cap while they are acquired, held and ending, until their end is settled", async () => {
    const intake = await holding(3, "a");
    const { clock, connections } = intake;
    assert.equal(connections.freeSlots(), 2);
    assert.equal(connections.beginAcquire("b"), "begun");
    assert.deepEqual([connections.freeSlots(), connections.size, connections.acquiring], [1, 1, 1]);
    connections.endAcquire("b");
    assert.equal(connections.freeSlots(), 2);

    intake.db.faults = () => ({ kind: "throttle" });
    void connections.get("a")?.drain();
    await clock.advance(5000);
    assert.equal(connections.freeSlots(), 2, "the store has not yet said that it is free");
    intake.db.faults = undefined;
    await clock.advance(1000);
    assert.equal(connections.freeSlots(), 3);
    assert.equal(connections.get("a"), undefined);
  });

  it("are taken one operation at a time, and no more than the cap", async () => {
    const { connections } = await holding(2, "a");
    assert.equal(connections.beginAcquire("a"), "known");
    assert.equal(connections.beginAcquire("b"), "begun");
    assert.equal(connections.beginAcquire("b"), "known");
    assert.equal(connections.beginAcquire("c"), "full");
    connections.endAcquire("b");
    assert.equal(connections.beginAcquire("c"), "begun");
  });

  it("tell whoever waits for a slot, until it no longer wants to know", async () => {
    const { clock, connections } = await holding(2, "a");
    let told = 0;
    const off = connections.onFreed(() => told++);
    connections.beginAcquire("b");
    connections.endAcquire("b");
    assert.equal(told, 1);
    await connections.get("a")?.drain();
    await clock.settle();
    assert.equal(told, 2);
    off();
    connections.beginAcquire("b");
    connections.endAcquire("b");
    assert.equal(told, 2);
  });

  it("are counted by what their sockets do", async () => {
    const intake = await holding(5, "a", "b", "c");
    intake.dial.sockets[0]?.open();
    intake.dial.sockets[1]?.end({ code: 1006 });
    assert.equal(intake.connections.openSockets(), 1);
    assert.deepEqual(intake.connections.countByState(), { streaming: 1, "backing-off": 1, connecting: 1 });
    assert.equal(intake.connections.size, 3);
  });
});
