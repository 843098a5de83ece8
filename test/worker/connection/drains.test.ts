import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DialGate } from "../../../worker/connection/dial-gate.ts";
import { HEART_SETTINGS } from "../support/heart.ts";
import { Line, LINE_SETTINGS } from "../support/line.ts";

const { leaseMs } = HEART_SETTINGS;

describe("a drain", () => {
  it("while waiting for the dial gate gives the place up and releases", async () => {
    const line = await Line.start({
      dialGate: (clock) => {
        const gate = new DialGate(clock, 1, 1000);
        gate.enter("feed.test", () => undefined);
        return gate;
      },
    });
    await line.connection.drain();
    assert.equal(line.state, "released");
    line.dialGate.leave("feed.test");
    await line.clock.advance(1000);
    assert.equal(line.dial.sockets.length, 0);
    assert.equal(line.lease.owner, undefined);
  });

  it("while dialling ends the dial and releases", async () => {
    const line = await Line.start();
    await line.connection.drain();
    assert.equal(line.state, "released");
    assert.equal(line.socket.state, "ended");
    line.socket.sayThoughEnded("late");
    assert.deepEqual(line.lane.payloads, []);
  });

  it("while backing off releases, and dials no more", async () => {
    const line = await Line.start();
    line.socket.end({ code: 1006 });
    await line.connection.drain();
    assert.equal(line.state, "released");
    await line.clock.advance(60_000);
    assert.equal(line.dial.sockets.length, 1);
  });

  it("waits for the peer no longer than the grace", async () => {
    const line = await Line.streaming();
    const startMs = line.clock.monotonicMs();
    const drained = line.connection.drain();
    await line.untilEnded();
    await drained;
    assert.equal(line.clock.monotonicMs() - startMs, LINE_SETTINGS.closeGraceMs);
  });

  it("releases only what is durable: it waits for the flush, renewed meanwhile, however long that takes", async () => {
    const line = await Line.streaming();
    line.lane.hold();
    line.socket.send("one");
    const drained = line.connection.drain();
    line.socket.end();
    await line.clock.advance(60_000);
    assert.equal(line.state, "draining");
    assert.equal(line.holding.mayAct(), true, "still renewed");
    assert.ok(!Object.hasOwn(line.item, "last_seq"));
    line.lane.store();
    await drained;
    assert.equal(line.item["last_seq"]?.N, String(line.holding.epoch * 1_000_000_000_000n + 1n));
  });

  it("may be asked for again at any time", async () => {
    const line = await Line.streaming();
    const first = line.connection.drain();
    const second = line.connection.drain();
    line.socket.end();
    await Promise.all([first, second]);
    await line.connection.drain();
    assert.equal(line.state, "released");
    assert.equal(line.heart.sent("free", "c").length, 1);
  });

  it("of a parked or lost connection changes nothing", async () => {
    const line = await Line.start();
    line.socket.end({ httpStatus: 403 });
    await line.untilEnded();
    await line.connection.drain();
    assert.equal(line.state, "parked");
  });

  it("turns into a loss when another epoch writes before the flush is done", async () => {
    const line = await Line.streaming();
    line.lane.hold();
    line.socket.send("one");
    void line.connection.drain();
    line.socket.end();
    await line.heart.change("c", { lease_owner: { S: "other" }, lease_epoch: { N: String(line.holding.epoch + 1n) } });
    await line.untilEnded();
    assert.equal(line.state, "lost");
    line.lane.store();
    await line.clock.advance(1000);
    assert.equal(line.state, "lost");
    assert.equal(line.heart.sent("free", "c").length, 0, "nothing of ours is left to be freed");
  });

  it("turns into a bare release when the deadline passes before the flush is done", async () => {
    const line = await Line.streaming();
    line.lane.hold();
    line.socket.send("one");
    void line.connection.drain();
    line.heart.fault = () => ({ kind: "throttle" });
    await line.clock.advanceUntil(() => line.state === "lost", leaseMs);
    assert.equal(line.socket.state, "ended");
    line.lane.store();
    await line.clock.advance(5000);
    assert.equal(line.ended, false);
    line.heart.fault = undefined;
    await line.untilEnded();
    assert.equal(line.state, "lost");
    assert.equal(line.lease.owner, undefined);
    assert.equal(line.item["last_seq"], undefined, "past the deadline nothing is claimed");
  });

  it("of a process that was frozen beyond the deadline sends nothing more: it just stops", async () => {
    const line = await Line.streaming();
    line.socket.send("before");
    line.clock.stepWall(leaseMs);
    void line.connection.drain();
    assert.equal(line.state, "lost");
    assert.equal(line.socket.state, "ended");
    await line.untilEnded();
    assert.deepEqual(line.heart.journal.events(), ["open", "fenced", "closed"]);
    assert.ok(!Object.hasOwn(line.item, "last_seq"));
  });

  it("takes frames only until the deadline", async () => {
    const line = await Line.streaming({ settings: { closeGraceMs: 30_000 } });
    void line.connection.drain();
    line.socket.send("in time");
    line.clock.stepWall(leaseMs);
    line.socket.send("too late");
    assert.deepEqual(line.lane.payloads, ["in time"]);
    assert.equal(line.state, "lost");
    await line.untilEnded();
  });

  it("that meets a park under way lets the park decide", async () => {
    const line = await Line.streaming();
    line.lane.events.onRefused(1n, "too large");
    void line.connection.drain();
    line.socket.end();
    await line.untilEnded();
    assert.equal(line.state, "parked");
  });
});
