import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bench, pushAll, row, SETTINGS, TOO_LONG } from "./support.ts";

describe("a message that DynamoDB refuses", () => {
  it("is found among innocent ones; only its own lane learns of it, everything else is written", async () => {
    for (const guilty of [0, 1, 12, 23, 24]) {
      const { clock, lane, counts, stored, writer } = bench();
      const lanes = Array.from({ length: 25 }, () => lane());
      lanes.forEach(({ lane: one }, i) => one.push(row(`c${i}`, i === guilty ? TOO_LONG : 1)));
      await clock.advance(SETTINGS.lingerMs);
      assert.equal(stored().size, 24);
      lanes.forEach(({ lane: one, told }, i) => {
        assert.deepEqual(
          told.refused.map(({ seq }) => seq),
          i === guilty ? [TOO_LONG] : [],
        );
        assert.deepEqual(one.checkpoint, i === guilty ? undefined : { lastSeq: 1n });
      });
      assert.match(lanes[guilty]!.told.refused[0]!.problem, /38|digits|significan/i);
      assert.equal(counts.of("MessagesRefused"), 1);
      assert.equal(counts.of("MessagesStored"), 24);
      assert.equal(counts.of("MessageWriteRetries"), 0);
      assert.equal(writer.pendingItems, 0);
      assert.equal(writer.pendingBytes, 0);
    }
  });

  it("costs few requests to find", async () => {
    const { clock, lane, requests } = bench();
    const { lane: one } = lane();
    pushAll(one, "a", 1, 24);
    one.push(row("a", TOO_LONG));
    await clock.settle();
    assert.ok(requests.length <= 11, `${requests.length} requests`);
  });

  it("stops its lane's checkpoint for good, while later rows are still written", async () => {
    const { clock, lane, stored } = bench();
    const { lane: one, told } = lane();
    pushAll(one, "a", 1, 10);
    one.push(row("a", 11, { payload: "", cursor: "c".repeat(500_000) }));
    pushAll(one, "a", 12, 60);
    await clock.advance(1000);
    assert.deepEqual(
      told.refused.map(({ seq }) => seq),
      [11n],
    );
    assert.deepEqual(one.checkpoint, { lastSeq: 10n });
    pushAll(one, "a", 61, 99);
    await clock.advance(1000);
    assert.deepEqual(one.checkpoint, { lastSeq: 10n });
    assert.equal([...stored()].filter((key) => key.startsWith("a/")).length, 98);
    assert.equal(one.pendingItems, 0);
  });

  it("without part in the prefix leaves the prefix alone", async () => {
    const { clock, lane } = bench();
    const { lane: one, told } = lane();
    pushAll(one, "a", 1, 3);
    one.push(row("a#unpositioned", 2, { cursor: "c".repeat(500_000) }), { checkpointed: false });
    pushAll(one, "a", 4, 6);
    await clock.advance(1000);
    assert.equal(told.refused.length, 1);
    assert.deepEqual(one.checkpoint, { lastSeq: 6n });
  });

  it("is told for each refused row, several in one batch", async () => {
    const { clock, lane, stored } = bench();
    const { lane: bad, told } = lane();
    const { lane: good } = lane();
    for (let n = 0n; n < 5n; n++) {
      bad.push(row("bad", TOO_LONG + n));
      good.push(row("good", n));
    }
    await clock.advance(1000);
    assert.equal(told.refused.length, 5);
    assert.equal(stored().size, 5);
    assert.deepEqual(good.checkpoint, { lastSeq: 4n });
  });

  it("is told to nobody once the lane is closed, and a listener that throws stops nobody else", async () => {
    const { clock, lane, writer, stored } = bench();
    const { lane: closed, told } = lane();
    closed.push(row("closed", TOO_LONG));
    closed.push(row("closed", 1));
    closed.close();
    const bad = writer.lane({
      onRefused: () => {
        throw new Error("a listener's mistake");
      },
      onPressure: () => undefined,
    });
    bad.push(row("bad", TOO_LONG));
    const { lane: good } = lane();
    pushAll(good, "good", 1, 60);
    await clock.advance(1000);
    assert.deepEqual(told.refused, []);
    assert.deepEqual(closed.checkpoint, { lastSeq: 1n });
    assert.deepEqual(good.checkpoint, { lastSeq: 60n });
    assert.equal(stored().size, 61);
  });

  it("is still found when the halves meet throttles and errors", async () => {
    const { clock, lane, stored } = bench({
      faults: (call) =>
        call.n % 3 === 0 ? { kind: "throttle" } : call.n % 5 === 0 ? { kind: "server-error" } : undefined,
    });
    const lanes = Array.from({ length: 50 }, () => lane());
    lanes.forEach(({ lane: one }, i) => one.push(row(`c${i}`, i % 17 === 3 ? TOO_LONG : 1)));
    await clock.advance(60_000);
    assert.equal(stored().size, 47);
    lanes.forEach(({ told }, i) => assert.equal(told.refused.length, i % 17 === 3 ? 1 : 0));
  });
});
