import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MAX_BATCH_BYTES } from "../../../worker/messages/limits.ts";
import { bench, pushAll, row, SETTINGS } from "./support.ts";

const slow = (ms: number) => () => ({ kind: "delay", ms }) as const;

describe("batching", () => {
  it("lets a batch that is not full linger, across lanes", async () => {
    const { clock, lane, requests, writer, counts } = bench();
    const [a, b] = [lane().lane, lane().lane];
    a.push(row("a", 1));
    await clock.advance(SETTINGS.lingerMs - 1);
    b.push(row("b", 1));
    assert.deepEqual(requests, []);
    assert.equal(writer.pendingItems, 2);
    await clock.advance(1);
    assert.deepEqual(requests, [["a/1", "b/1"]]);
    assert.equal(writer.pendingItems, 0);
    assert.equal(writer.pendingBytes, 0);
    assert.equal(counts.of("MessagesStored"), 2);
    assert.equal(clock.pendingTimers, 0);
  });

  it("sends a full batch at once", async () => {
    const { clock, lane, requests } = bench();
    pushAll(lane().lane, "a", 1, 25);
    await clock.settle();
    assert.deepEqual(
      requests.map((keys) => keys.length),
      [25],
    );
    assert.equal(clock.pendingTimers, 0);
  });

  it("bounds a batch in bytes too and does not let it linger then", async () => {
    const { clock, lane, requests, stored } = bench();
    pushAll(lane().lane, "a", 1, 12, { payload: "x".repeat(300_000) });
    await clock.settle();
    assert.ok(requests.length >= 2);
    const most = Math.floor(MAX_BATCH_BYTES / 300_000);
    assert.ok(requests.every((keys) => keys.length <= most));
    await clock.advance(SETTINGS.lingerMs);
    assert.equal(stored().size, 12);
  });

  it("has no more requests under way than allowed", async () => {
    const { clock, lane, requests, stored } = bench({ settings: { concurrency: 3 }, faults: slow(100) });
    pushAll(lane().lane, "a", 1, 250);
    await clock.advance(99);
    assert.equal(requests.length, 3);
    await clock.advance(1);
    assert.equal(requests.length, 6);
    await clock.advance(1000);
    assert.equal(requests.length, 10);
    assert.equal(stored().size, 250);
  });

  it("takes turns between lanes, so that a flood does not hold up the others", async () => {
    const { clock, lane, requests } = bench({ settings: { concurrency: 1 }, faults: slow(10) });
    pushAll(lane().lane, "flood", 1, 2000);
    await clock.settle();
    for (let i = 0; i < 10; i++) pushAll(lane().lane, `quiet${i}`, 1, 2);
    await clock.advance(25);
    const next = requests.slice(1, 3).flat();
    for (let i = 0; i < 10; i++) {
      assert.ok(next.includes(`quiet${i}/1`) && next.includes(`quiet${i}/2`), `quiet${i} waits behind the flood`);
    }
  });

  it("never has a key twice in a batch or under way, and writes rows of the same key in order", async () => {
    const underWay = new Set<string>();
    const { clock, db, lane, requests } = bench({ faults: slow(50) });
    const inner = db.faults!;
    db.faults = (call) => {
      const fault = inner(call);
      const keys = requests.at(-1)!;
      for (const key of keys) {
        assert.ok(!underWay.has(key), `${key} is sent while it is under way`);
        underWay.add(key);
      }
      clock.after(49, () => keys.forEach((key) => underWay.delete(key)));
      return fault;
    };
    const { lane: one } = lane();
    const { lane: other } = lane();
    for (const payload of ["first", "second", "third"]) {
      one.push(row("a", 1, { payload }));
      one.push(row("a", payload.length + 10, { payload }));
    }
    other.push(row("a", 1, { payload: "of another holding" }));
    other.push(row("b", 1));
    await clock.advance(1000);
    const payloads = requests.flat().filter((key) => key === "a/1").length;
    assert.equal(payloads, 4);
    assert.equal(one.pendingItems + other.pendingItems, 0);
    assert.deepEqual(one.checkpoint, { lastSeq: 16n });
  });

  it("lets the last of a lane's rows of one key win, also when the earlier ones must be sent again", async () => {
    let n = 0;
    const { clock, db, lane } = bench({
      faults: () => (n++ < 4 ? ({ kind: n % 2 === 0 ? "throttle" : "apply-then-error" } as const) : undefined),
    });
    const { lane: one } = lane();
    for (const payload of ["first", "second", "third"]) one.push(row("a", 1, { payload }));
    await clock.advance(60_000);
    assert.equal(one.pendingItems, 0);
    assert.equal(db.items("messages")[0]?.["payload"]?.S, "third");
  });

  it("writes the attributes that readers expect", async () => {
    const { clock, db, lane } = bench();
    const { lane: one } = lane();
    one.push(row("a", 10n ** 37n, { payload: "téxt", cursor: "c-1", receivedAtMs: 1_767_225_600_999, epoch: 1_767n }));
    one.push(row("b", 2, { payload: new Uint8Array([0, 255, 10]) }));
    one.push(row("c", 3, { payload: "" }));
    await clock.advance(SETTINGS.lingerMs);
    const common = { lease_epoch: { N: "7" }, received_at_ms: { N: "1767225600000" }, expires_at: { N: "1767229200" } };
    assert.deepEqual(
      new Map(db.items("messages").map((item) => [item["connection_id"]?.S, item])),
      new Map<string, object>([
        [
          "a",
          {
            ...common,
            connection_id: { S: "a" },
            seq: { N: `1${"0".repeat(37)}` },
            payload: { S: "téxt" },
            opcode: { S: "text" },
            cursor: { S: "c-1" },
            received_at_ms: { N: "1767225600999" },
            lease_epoch: { N: "1767" },
          },
        ],
        [
          "b",
          {
            ...common,
            connection_id: { S: "b" },
            seq: { N: "2" },
            payload: { B: new Uint8Array([0, 255, 10]) },
            opcode: { S: "binary" },
          },
        ],
        ["c", { ...common, connection_id: { S: "c" }, seq: { N: "3" }, payload: { S: "" }, opcode: { S: "text" } }],
      ]),
    );
  });
});
