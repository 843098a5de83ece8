import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { at, Line, LINE_SETTINGS, POSITIONED } from "../support/line.ts";

describe("a producer's change of a held connection", () => {
  it("of the URL closes the old socket, reads it to its end, and only then dials the new one", async () => {
    const line = await Line.streaming();
    const old = line.socket;
    old.send("one");
    await line.change({ ws_url: { S: "wss://new.test/" } });
    assert.equal(old.state, "closing");
    assert.equal(line.dial.sockets.length, 1);
    await line.clock.advance(LINE_SETTINGS.closeGraceMs / 2);
    old.send("on its way");
    assert.equal(line.dial.sockets.length, 1, "some feeds allow one connection per key");
    old.end();
    const next = await line.dialled(2);
    assert.equal(next.url, "wss://new.test/");
    next.open();
    next.send("two");
    assert.deepEqual(line.lane.payloads, ["one", "on its way", "two"]);
    assert.equal(line.lease.owner, "me", "the lease is kept");
  });

  it("is no failure: the new socket is dialled at once, and nothing is counted", async () => {
    const line = await Line.streaming({ random: () => 0.999 });
    for (let n = 1; n <= 30; n++) {
      await line.change({ ws_url: { S: `wss://feed-${n}.test/` } });
      line.socket.end({ code: 4004 });
      const endedAtMs = line.clock.monotonicMs();
      assert.equal((await line.dialled(n + 1)).dialledAtMs, endedAtMs);
      line.socket.open();
    }
    assert.equal(line.state, "streaming");
    assert.equal(line.count("ConnectFailures"), 0);
  });

  it("is carried out after the grace when the old peer does not answer the close", async () => {
    const line = await Line.streaming();
    await line.change({ ws_url: { S: "wss://new.test/" } });
    const askedAtMs = line.clock.monotonicMs();
    assert.equal((await line.dialled(2)).dialledAtMs - askedAtMs, LINE_SETTINGS.closeGraceMs);
  });

  it("ends a dial that is under way and takes its place", async () => {
    const line = await Line.start();
    await line.change({ ws_url: { S: "wss://new.test/" } });
    assert.equal(line.dial.sockets[0]?.state, "ended");
    assert.equal((await line.dialled(2)).url, "wss://new.test/");
  });

  it("while backing off is dialled when the wait is over", async () => {
    const line = await Line.start({ random: () => 0.5 });
    line.socket.end({ httpStatus: 503, retryAfterMs: 20_000 });
    await line.change({ ws_url: { S: "wss://new.test/" } });
    assert.equal(line.state, "backing-off");
    assert.equal((await line.dialled(2)).url, "wss://new.test/");
    line.socket.end({ code: 1006 });
    assert.equal(line.count("ConnectFailures"), 2, "only a socket that we end ourselves is no failure");
  });

  it("twice in a row loses nothing of the old socket and dials the last one", async () => {
    const line = await Line.streaming({ settings: { closeGraceMs: 20_000 } });
    const old = line.socket;
    await line.change({ ws_url: { S: "wss://second.test/" } });
    await line.change({ ws_url: { S: "wss://third.test/" } });
    old.send("on its way");
    old.end();
    assert.equal((await line.dialled(2)).url, "wss://third.test/");
    assert.deepEqual(line.lane.payloads, ["on its way"]);
  });

  it("of nothing that matters keeps the socket", async () => {
    const line = await Line.streaming({ item: POSITIONED });
    await line.change({ failure_count: { N: "2" }, last_seq: { N: "5" }, note: { S: "by hand" } });
    assert.equal(line.state, "streaming");
    assert.equal(line.socket.state, "open");
    line.socket.send(at(1));
    assert.deepEqual(line.lane.seqs, [1n]);
  });

  it("of the kind of the feed is refused by a park: the keys of what is stored would change their meaning", async () => {
    for (const [from, to, kind] of [
      [POSITIONED, { upstream: { M: {} } }, "positioned"],
      [{}, POSITIONED, "unpositioned"],
    ] as const) {
      const line = await Line.streaming({ item: from });
      await line.heart.change("c", to);
      await line.clock.advanceUntil(() => line.state === "draining", 7000);
      line.socket.end();
      await line.untilEnded();
      assert.equal(line.state, "parked");
      assert.equal(line.item["last_error"]?.S, `the feed must stay ${kind}: its stored messages are keyed so`);
      assert.equal(line.dial.sockets.length, 1);
    }
  });

  for (const [what, change, problem] of [
    ["a URL of another protocol", { ws_url: { S: "http://feed.test/" } }, /ws_url must begin with/],
    ["a URL that is no string", { ws_url: { N: "1" } }, /ws_url must be a string/],
    ["settings of an unknown name", { upstream: { M: { positon: { S: "x" } } } }, /upstream/],
    ["a desired state that nobody knows", { desired_state: { S: "PAUSED" } }, /desired_state must be/],
  ] as const) {
    it(`to ${what} parks it with the field and the rule`, async () => {
      const line = await Line.streaming();
      await line.heart.change("c", change);
      await line.clock.advanceUntil(() => line.state === "draining", 7000);
      line.socket.end();
      await line.untilEnded();
      assert.equal(line.state, "parked");
      assert.match(line.item["last_error"]?.S ?? "", problem);
      assert.equal(line.count("MalformedItems"), 1);
    });
  }

  it("names every problem of it", async () => {
    const line = await Line.start();
    await line.heart.change("c", { ws_url: { N: "1" }, upstream: { S: "odd" } });
    await line.untilEnded();
    assert.match(line.item["last_error"]?.S ?? "", /ws_url must be a string; upstream: /);
  });

  it("to no desired state at all parks it", async () => {
    const line = await Line.start();
    const { desired_state: _gone, ...rest } = line.item;
    await line.heart.put(rest);
    await line.untilEnded();
    assert.equal(line.state, "parked");
    assert.match(line.item["last_error"]?.S ?? "", /desired_state must be/);
  });

  it("while it drains is left to the next owner", async () => {
    const line = await Line.start();
    line.lane.hold();
    const drained = line.connection.drain();
    await line.change({ ws_url: { N: "1" } });
    line.lane.store();
    await drained;
    assert.equal(line.state, "released");
    assert.deepEqual([line.count("MalformedItems"), line.count("ConnectionsParked")], [0, 0]);
  });

  it("to STOPPED drains and releases it", async () => {
    const line = await Line.streaming();
    await line.heart.change("c", { desired_state: { S: "STOPPED" } });
    await line.clock.advanceUntil(() => line.socket.state === "closing", 6100);
    line.socket.send("on its way");
    line.socket.end();
    await line.untilEnded();
    assert.equal(line.state, "released");
    assert.deepEqual(line.lane.payloads, ["on its way"]);
    assert.equal(line.lease.owner, undefined);
    assert.equal(line.item["desired_state"]?.S, "STOPPED");
  });

  it("to STOPPED is seen also when it came between the acquire and the reading of its answer", async () => {
    // A resent acquire is answered with the item as it is then.
    const line = await Line.stoppedBeforeItBegan();
    await line.clock.advanceUntil(() => line.state === "draining" || line.ended, 7000);
    await line.untilEnded();
    assert.equal(line.state, "released");
    assert.equal(line.lease.owner, undefined);
  });
});
