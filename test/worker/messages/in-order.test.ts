import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bench, row, Told } from "./support.ts";

/** Numbers of partition `a` in the order their batches were sent. */
const sent = (requests: readonly string[][]): number[][] =>
  requests.map((batch) => batch.filter((key) => key.startsWith("a/")).map((key) => Number(key.slice(2))));

describe("a lane that is stored in order", () => {
  it("has one batch at a time, so that a kill leaves no hole behind stored rows", async () => {
    const { clock, requests, stored, writer } = bench({ faults: () => ({ kind: "delay", ms: 100 }) });
    const lane = writer.lane(new Told(), { inOrder: true });
    for (let seq = 1; seq <= 60; seq++) lane.push(row("a", seq));
    await clock.advance(99);
    assert.equal(requests.length, 1);
    assert.equal(stored().size, 0);
    await clock.advance(100);
    assert.equal(requests.length, 2);
    await clock.advance(200);
    const order = sent(requests).flat();
    assert.deepEqual(
      order,
      Array.from({ length: 60 }, (_, i) => i + 1),
    );
    assert.deepEqual(lane.checkpoint, { lastSeq: 60n });
  });

  it("sends rows again that were left unprocessed before any later one", async () => {
    let n = 0;
    const { clock, requests, writer } = bench({
      faults: () => (++n === 1 ? { kind: "unprocessed", select: (i) => i >= 10 } : undefined),
    });
    const lane = writer.lane(new Told(), { inOrder: true });
    for (let seq = 1; seq <= 50; seq++) lane.push(row("a", seq));
    await clock.advance(60_000);
    const again = sent(requests)[1] ?? [];
    assert.deepEqual(
      again.slice(0, 15),
      Array.from({ length: 15 }, (_, i) => i + 11),
    );
    assert.deepEqual(lane.checkpoint, { lastSeq: 50n });
  });

  it("leaves the places to other lanes meanwhile", async () => {
    const { clock, requests, writer } = bench({ faults: () => ({ kind: "delay", ms: 100 }) });
    const first = writer.lane(new Told(), { inOrder: true });
    const second = writer.lane(new Told(), { inOrder: true });
    for (let seq = 1; seq <= 25; seq++) first.push(row("a", seq));
    for (let seq = 1; seq <= 25; seq++) second.push(row("b", seq));
    await clock.advance(50);
    assert.equal(requests.length, 2);
    await clock.advance(60);
    assert.equal(await first.flush(), true);
    assert.equal(await second.flush(), true);
  });
});
