import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DialGate } from "../../../worker/connection/dial-gate.ts";
import type { Lane } from "../../../worker/messages/lane.ts";
import { HEART_SETTINGS } from "../support/heart.ts";
import { Line, LINE_SETTINGS } from "../support/line.ts";
import { ScriptedLane } from "../support/scripted-lane.ts";

const { leaseMs, marginMs } = HEART_SETTINGS;

describe("a connection", () => {
  it("dials when its turn comes, streams once the socket is open, and is released by a drain", async () => {
    const line = await Line.start();
    assert.equal(line.state, "connecting");
    assert.equal(line.connection.open, false);
    line.socket.open();
    assert.equal(line.state, "streaming");
    assert.equal(line.connection.open, true);
    line.socket.send("one", "two");

    const drained = line.connection.drain();
    assert.equal(line.state, "draining");
    line.socket.send("on its way");
    line.socket.end();
    await drained;
    assert.equal(line.state, "released");
    assert.deepEqual(line.lane.payloads, ["one", "two", "on its way"]);
    assert.equal(line.lane.closed, true);
    assert.deepEqual([line.lease.owner, line.lease.expiresAtMs], [undefined, 0]);
    assert.equal(line.item["last_seq"]?.N, String(line.holding.epoch * 1_000_000_000_000n + 3n));
    assert.deepEqual(line.heart.journal.events(), ["open", "closed", "released"]);
  });

  it("backs off after a failed dial and dials again", async () => {
    const line = await Line.start();
    line.socket.end({ error: "handshake timeout" });
    assert.equal(line.state, "backing-off");
    assert.equal(line.count("ConnectFailures"), 1);
    assert.deepEqual(line.heart.journal.events(), [], "what never opened is not closed");
    const second = await line.dialled(2);
    assert.equal(line.state, "connecting");
    second.open();
    assert.equal(line.state, "streaming");
    assert.equal(line.count("Reconnects"), 1);
  });

  it("waits for its turn at the dial gate, renewed meanwhile", async () => {
    const line = await Line.start({
      dialGate: (clock) => {
        const gate = new DialGate(clock, 1, 1000);
        gate.enter("feed.test", () => undefined);
        return gate;
      },
    });
    await line.clock.advance(60_000);
    assert.equal(line.state, "connecting");
    assert.equal(line.dial.sockets.length, 0);
    assert.equal(line.holding.mayAct(), true);
    line.dialGate.leave("feed.test");
    assert.equal(line.dial.sockets.length, 1);
  });

  it("gives its place at the dial gate back when the handshake is over, however it went", async () => {
    const line = await Line.start({ dialGate: (clock) => new DialGate(clock, 1, 1000) });
    let turn = 0;
    line.dialGate.enter("feed.test", () => turn++);
    assert.equal(turn, 0);
    line.socket.open();
    assert.equal(turn, 1, "after an opened socket");
    line.dialGate.leave("feed.test");
    line.socket.end({ code: 1006 });
    await line.dialled(2);
    line.dialGate.enter("feed.test", () => turn++);
    assert.equal(turn, 1);
    line.socket.end({ error: "ECONNREFUSED" });
    assert.equal(turn, 2, "after a failed one");
  });

  it("measures how long the connection was without a socket, once", async () => {
    const line = await Line.start({ freeSinceMs: 1 });
    line.socket.open();
    line.socket.end({ code: 1006 });
    (await line.dialled(2)).open();
    const delays = line.heart.metrics.take({}).filter(({ name }) => name === "HandoverDelay");
    assert.deepEqual(
      delays.map(({ counts }) => counts),
      [[1]],
    );
  });

  for (const [what, sinceMs, delayMs] of [
    ["since it became free", -700, 900],
    ["and not less than none, whatever the clocks say", 60_000, 0],
  ] as const) {
    it(`measures that delay ${what}`, async () => {
      const freeSinceMs = Date.UTC(2026, 0, 1) + sinceMs;
      const line = await Line.start({ freeSinceMs });
      await line.clock.advance(200);
      line.socket.open();
      const [delay] = line.heart.metrics.take({}).filter(({ name }) => name === "HandoverDelay");
      assert.deepEqual(delay?.values, [delayMs]);
    });
  }

  it("measures none where nobody knows since when it was free", async () => {
    const line = await Line.streaming();
    assert.ok(!line.heart.metrics.take({}).some(({ name }) => name === "HandoverDelay"));
  });

  it("says which local port its socket has", async () => {
    const line = await Line.streaming();
    const [opened] = line.heart.journal.entries.filter(({ event }) => event === "open");
    assert.equal(opened?.localPort, line.socket.localPort);
    assert.equal(typeof opened?.localPort, "number");
  });

  it("stores with every renewal how far its stream is durable", async () => {
    const line = await Line.streaming();
    line.socket.send("one", "two");
    await line.clock.advance(7000);
    assert.equal(line.item["last_seq"]?.N, String(line.holding.epoch * 1_000_000_000_000n + 2n));
    line.lane.hold();
    line.socket.send("three");
    await line.clock.advance(7000);
    assert.equal(line.item["last_seq"].N, String(line.holding.epoch * 1_000_000_000_000n + 2n));
  });

  it("parks, and no other connection notices, when one of its messages cannot even be taken", async () => {
    const refusing: Pick<Lane, "push"> = {
      push: () => {
        throw new RangeError("too deep");
      },
    };
    const line = await Line.streaming({
      makeLane: (events, options) => Object.assign(new ScriptedLane(events, options), refusing),
    });
    line.socket.send("strange");
    assert.equal(line.state, "draining");
    line.socket.end();
    await line.untilEnded();
    assert.equal(line.item["last_error"]?.S, "message cannot be taken: too deep");
  });

  it("counts as parked once, and only when it is parked", async () => {
    const parked = await Line.streaming();
    parked.lane.events.onRefused(1n, "too large");
    parked.lane.events.onRefused(2n, "too large");
    parked.socket.end();
    await parked.untilEnded();
    parked.lane.events.onRefused(3n, "too large");
    assert.equal(parked.count("ConnectionsParked"), 1);
    assert.equal(parked.item["last_error"]?.S, "message 1 cannot be stored: too large");

    const released = await Line.start();
    await released.connection.drain();
    released.lane.events.onRefused(1n, "too large");
    assert.equal(released.count("ConnectionsParked"), 0);

    const lost = await Line.streaming();
    await lost.heart.change("c", { lease_epoch: { N: String(lost.holding.epoch + 1n) } });
    await lost.untilEnded();
    lost.lane.events.onRefused(1n, "too large");
    assert.equal(lost.count("ConnectionsParked"), 0);
  });

  it("parks at once when it cannot even dial, and lets the next one dial", async () => {
    const line = await Line.start({ dialGate: (clock) => new DialGate(clock, 1, 1000) });
    line.dial.failure = new SyntaxError("Invalid URL");
    line.socket.end({ code: 1006 });
    await line.untilEnded();
    assert.equal(line.state, "parked");
    assert.equal(line.item["last_error"]?.S, "cannot dial: Invalid URL");
    let turn = 0;
    line.dialGate.enter("feed.test", () => turn++);
    assert.equal(turn, 1);
  });

  it("ignores whatever an old socket still says", async () => {
    const line = await Line.streaming();
    const old = line.socket;
    old.send("in time");
    old.end({ code: 1006 });
    (await line.dialled(2)).open();
    old.sayThoughEnded("too late");
    assert.equal(line.state, "streaming");
    line.socket.send("new");
    assert.deepEqual(line.lane.payloads, ["in time", "new"]);
  });

  it("takes an old socket's late open for none of its own", async () => {
    const line = await Line.start();
    line.socket.end({ code: 1006 });
    line.socket.sayThoughEnded("too late");
    assert.equal(line.state, "backing-off");
    assert.equal(line.connection.open, false);
    assert.deepEqual(line.heart.journal.events(), []);
  });

  it("is lost at once when another epoch wrote, whatever it was doing", async () => {
    for (const phase of ["connecting", "streaming", "backing-off", "draining"] as const) {
      const line = await Line.start();
      if (phase !== "connecting") line.socket.open();
      if (phase === "backing-off") line.socket.end({ code: 1013 });
      if (phase === "draining") {
        line.lane.hold();
        void line.connection.drain();
      }
      assert.equal(line.state, phase);
      await line.heart.change("c", {
        lease_owner: { S: "other" },
        lease_epoch: { N: String(line.holding.epoch + 1n) },
        lease_expires_at_ms: { N: String(line.heart.anchored.nowMs() + 60_000) },
      });
      await line.untilEnded();
      assert.equal(line.state, "lost", phase);
      assert.equal(line.socket.state, "ended", phase);
      assert.equal(line.lane.closed, true, phase);
      const dials = line.dial.sockets.length;
      await line.clock.advance(60_000);
      assert.equal(line.dial.sockets.length, dials, phase);
      assert.equal(line.lease.owner, "other", phase);
    }
  });

  it("is cut off at its deadline, keeps what came before it, takes nothing after it, and frees itself", async () => {
    const line = await Line.streaming();
    line.socket.send("before");
    line.heart.fault = () => ({ kind: "throttle" });
    await line.clock.advanceUntil(() => !line.holding.mayAct(), leaseMs);
    const { socket } = line;
    // The timer has not run yet; data is delivered first.
    socket.send("after");
    assert.equal(line.state, "lost");
    assert.equal(socket.state, "ended");
    assert.deepEqual(line.lane.payloads, ["before"]);
    assert.equal(line.ended, false, "its end is not settled");
    line.heart.fault = undefined;
    await line.untilEnded();
    assert.equal(line.lease.owner, undefined);
    assert.deepEqual(line.heart.journal.events(), ["open", "fenced", "closed"]);
    assert.equal(line.count("LeaseFenced"), 1);
    assert.equal(line.count("LeaseLost"), 0);
  });

  it("does not dial once its deadline has passed, though its wait ends only then", async () => {
    const line = await Line.start();
    line.socket.end({ code: 1006 });
    line.clock.stepWall(leaseMs - marginMs);
    await line.clock.advance(2000);
    assert.equal(line.dial.sockets.length, 1);
    assert.equal(line.state, "lost");
    assert.equal(line.count("Reconnects"), 0);
  });

  it("does not dial when its turn comes only after the deadline, and gives the place to the next", async () => {
    const line = await Line.start({
      dialGate: (clock) => {
        const gate = new DialGate(clock, 1, 1000);
        gate.enter("feed.test", () => undefined);
        return gate;
      },
    });
    let next = 0;
    line.dialGate.enter("feed.test", () => next++);
    line.clock.stepWall(leaseMs);
    line.dialGate.leave("feed.test");
    assert.equal(line.dial.sockets.length, 0);
    assert.equal(next, 1);
    assert.equal(line.state, "lost");
  });

  it("does not become a stream when the handshake ends after the deadline", async () => {
    const line = await Line.start();
    line.clock.stepWall(leaseMs);
    line.socket.open();
    assert.equal(line.state, "lost");
    assert.equal(line.socket.state, "ended");
    assert.equal(line.connection.open, false);
  });

  it("passes the holding's own judgement on to its socket", async () => {
    const line = await Line.streaming();
    assert.equal(line.socket.mayAct(), true);
    line.clock.stepWall(leaseMs);
    assert.equal(line.socket.mayAct(), false);
  });

  it("parks when DynamoDB refuses one of its messages for good", async () => {
    const line = await Line.streaming();
    line.lane.events.onRefused(7n, "one number has too many digits");
    line.socket.end();
    await line.untilEnded();
    assert.equal(line.state, "parked");
    assert.equal(line.item["last_error"]?.S, "message 7 cannot be stored: one number has too many digits");
    assert.equal(line.lease.expiresAtMs, line.heart.anchored.nowMs() + LINE_SETTINGS.fatalParkMs);
  });

  it("asks for its failures to be forgotten from the very end of that minute, not earlier and not while closed", async () => {
    const line = await Line.start({ item: { failure_count: { N: "1" } } });
    await line.clock.advance(LINE_SETTINGS.healthyMs);
    assert.equal(line.connection.clearFailures(), false);
    line.socket.open();
    await line.clock.advance(LINE_SETTINGS.healthyMs - 1);
    assert.equal(line.connection.clearFailures(), false);
    await line.clock.advance(1);
    assert.equal(line.connection.clearFailures(), true);
  });

  it("forgets its failures after a healthy minute, counted from the open", async () => {
    const line = await Line.streaming({ item: { failure_count: { N: "3" }, last_error: { S: "was refused" } } });
    await line.clock.advance(30_000);
    line.socket.end({ code: 1001 });
    (await line.dialled(2)).open();
    await line.clock.advance(59_000);
    assert.deepEqual(line.item["failure_count"], { N: "3" });
    await line.clock.advance(8000);
    const item = line.heart.item("c");
    assert.deepEqual([item?.["failure_count"], item?.["last_error"]], [{ N: "0" }, undefined]);
    const cleared = line.heart.writes.length;
    await line.clock.advance(30_000);
    assert.ok(line.heart.writes.length > cleared);
    assert.equal(line.connection.clearFailures(), false, "once is enough");
  });
});
