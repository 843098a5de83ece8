import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bench, pushAll, row, SETTINGS, TOO_LONG } from "./support.ts";

describe("flush", () => {
  it("skips the linger and is true once everything pushed so far is durable", async () => {
    const { clock, lane, stored } = bench();
    const { lane: one } = lane();
    pushAll(one, "a", 1, 3);
    assert.equal(await one.flush(), true);
    assert.deepEqual(one.checkpoint, { lastSeq: 3n });
    assert.equal(stored().size, 3);
    assert.equal(clock.monotonicMs(), 0);
    assert.equal(await one.flush(), true, "nothing is pending");
    one.push(row("a", 4));
    await clock.advance(SETTINGS.lingerMs - 1);
    assert.equal(stored().size, 3, "afterwards rows linger again");
    await clock.advance(1);
    assert.equal(stored().size, 4);
  });

  it("waits neither for rows pushed later nor for other lanes", async () => {
    const { clock, lane } = bench({ faults: (call) => (call.n === 1 ? undefined : { kind: "no-answer" }) });
    const [{ lane: one }, { lane: other }] = [lane(), lane()];
    pushAll(one, "a", 1, 3);
    const flushed = one.flush();
    pushAll(one, "a", 4, 6);
    pushAll(other, "b", 1, 3);
    assert.equal(await flushed, true);
    assert.deepEqual(one.checkpoint, { lastSeq: 3n });
    assert.equal(one.pendingItems, 3);
    assert.ok(clock.pendingTimers <= 1);
  });

  it("waits for a row that is still under way although a later one is durable", async () => {
    let n = 0;
    const { clock, lane } = bench({ faults: () => (++n === 1 ? { kind: "delay", ms: 5000 } : undefined) });
    const { lane: one } = lane();
    pushAll(one, "a", 1, 25);
    await clock.settle();
    pushAll(one, "a", 26, 50);
    let flushed: boolean | undefined;
    void one.flush().then((ok) => (flushed = ok));
    pushAll(one, "a", 51, 100);
    await clock.advance(4999);
    assert.equal(flushed, undefined);
    assert.equal(one.pendingItems, 25);
    await clock.advance(1);
    assert.equal(flushed, true);
  });

  it("is false when something was refused, after the rest is settled, and false ever after", async () => {
    const { lane, stored } = bench();
    const { lane: one } = lane();
    one.push(row("a", 1));
    one.push(row("a", TOO_LONG));
    one.push(row("a", 2));
    assert.equal(await one.flush(), false);
    assert.equal(one.pendingItems, 0);
    assert.equal(stored().size, 2);
    one.push(row("a", 3));
    assert.equal(await one.flush(), false);
    assert.equal(stored().size, 3);
  });

  it("is false as soon as the signal aborts, and the rows are still written later", async () => {
    const { clock, db, lane } = bench({ faults: () => ({ kind: "throttle" }) });
    const { lane: one } = lane();
    one.push(row("a", 1));
    const controller = new AbortController();
    let flushed: boolean | undefined;
    void one.flush(controller.signal).then((ok) => (flushed = ok));
    await clock.advance(30_000);
    assert.equal(flushed, undefined);
    controller.abort();
    await clock.settle();
    assert.equal(flushed, false);
    assert.equal(await one.flush(controller.signal), false);
    db.faults = undefined;
    await clock.advance(10_000);
    assert.deepEqual(one.checkpoint, { lastSeq: 1n });
    assert.equal(await one.flush(controller.signal), true, "nothing is pending, so nothing is given up");
  });

  it("of all lanes covers closed ones too", async () => {
    const { lane, stored, writer, requests } = bench();
    const closed = lane().lane;
    closed.push(row("closed", 1));
    closed.close();
    for (let i = 0; i < 30; i++) lane().lane.push(row(`c${i}`, 1));
    assert.equal(await writer.flushAll(new AbortController().signal), true);
    assert.equal(stored().size, 31);
    assert.equal(requests.length, 2);
    const bad = lane().lane;
    bad.push(row("bad", TOO_LONG));
    assert.equal(await writer.flushAll(), false);
    assert.equal(await writer.flushAll(), true, "nothing is pending any more");
  });

  it("of hundreds of lanes at once resolves each", async () => {
    const { lane } = bench();
    const lanes = Array.from({ length: 500 }, () => lane().lane);
    lanes.forEach((one, i) => pushAll(one, `c${i}`, 1, 3));
    const { signal } = new AbortController();
    assert.ok((await Promise.all(lanes.map((one) => one.flush(signal)))).every(Boolean));
  });
});

describe("stop", () => {
  it("with a signal writes what is there first", async () => {
    const { clock, lane, stored, writer } = bench();
    pushAll(lane().lane, "a", 1, 30);
    await writer.stop(new AbortController().signal);
    assert.equal(stored().size, 30);
    assert.equal(clock.pendingTimers, 0);
  });

  it("leaves no timer in any state and answers those who wait", async () => {
    for (const kind of ["throttle", "server-error", "linger"] as const) {
      const { clock, lane, writer } = bench({ faults: () => (kind === "linger" ? undefined : { kind }) });
      const { lane: one } = lane();
      pushAll(one, "a", 1, kind === "linger" ? 3 : 300);
      if (kind !== "linger") await clock.advance(10_000);
      const flushed = kind === "linger" ? undefined : one.flush();
      await writer.stop();
      assert.equal(clock.pendingTimers, 0, kind);
      assert.notEqual(await flushed, true);
      assert.equal(await writer.flushAll(), false);
      assert.equal(await one.flush(), false);
      assert.equal(one.checkpoint, undefined);
      one.push(row("a", 1000));
      await clock.advance(60_000);
      assert.equal(clock.pendingTimers, 0, `${kind}: a late row starts nothing`);
      assert.equal(one.checkpoint, undefined);
    }
  });

  it("waits for the answers of requests under way, and counts what they wrote", async () => {
    const { clock, lane, writer, requests } = bench({ faults: () => ({ kind: "delay", ms: 2000 }) });
    const { lane: one } = lane();
    pushAll(one, "a", 1, 200);
    await clock.settle();
    let stopped = false;
    void writer.stop().then(() => (stopped = true));
    await clock.advance(1999);
    assert.equal(stopped, false);
    await clock.advance(1);
    assert.equal(stopped, true);
    assert.equal(requests.length, SETTINGS.concurrency);
    assert.deepEqual(one.checkpoint, { lastSeq: 100n });
    assert.equal(one.pendingItems, 100);
  });

  it("does not rest a lane whose answer comes while stopping", async () => {
    const { clock, db, lane, writer } = bench();
    const original = db.faults!;
    let n = 0;
    const { lane: one } = lane();
    db.faults = (call) => {
      original(call);
      n++;
      return { kind: "unprocessed", select: (i) => i % 2 === 0 };
    };
    pushAll(one, "a", 1, 25);
    const stopped = writer.stop();
    await stopped;
    assert.equal(n, 1);
    assert.equal(clock.pendingTimers, 0);
    assert.equal(one.pendingItems, 13);
  });

  it("cuts off requests that get no answer when the signal aborts", async () => {
    const { clock, lane, writer } = bench({ faults: () => ({ kind: "no-answer" }) });
    pushAll(lane().lane, "a", 1, 200);
    const controller = new AbortController();
    let stopped = false;
    void writer.stop(controller.signal).then(() => (stopped = true));
    await clock.advance(30_000);
    assert.equal(stopped, false);
    controller.abort();
    await clock.settle();
    assert.equal(stopped, true);
    assert.equal(clock.pendingTimers, 0);
    assert.equal(writer.pendingItems, 200);
    await writer.stop();
  });
});
