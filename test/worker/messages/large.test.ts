import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sleep } from "../../../shared/clock.ts";
import { bench, claimOf, Counts, makeWriter, pushAll, row, TABLE, Told } from "./support.ts";

const ONE_MB = 1_000_000;
const isHead = (key: string): boolean => key.startsWith("a/");

describe("a message in parts", () => {
  it("gets its head only when every part is durable, however many requests that takes", async () => {
    for (const concurrency of [1, 2, 8]) {
      const { clock, lane, requests, db } = bench({ settings: { concurrency } });
      const { lane: one } = lane();
      one.push(row("a", 7, { payload: "x".repeat(5 * ONE_MB), cursor: "c7" }));
      await clock.advance(1000);
      const sent = requests.flat();
      assert.equal(sent.filter(isHead).length, 1);
      assert.equal(sent.at(-1), "a/7");
      const head = db.items(TABLE).find((item) => item["connection_id"]?.S === "a");
      assert.equal(head?.["parts"]?.N, "14");
      assert.equal(head["payload"], undefined);
      assert.deepEqual(one.checkpoint, { lastSeq: 7n, lastCursor: "c7" });
    }
  });

  it("is not claimed while a part is missing, and rows behind it wait only for the claim", async () => {
    let broken = true;
    const { clock, db, lane, requests, stored } = bench();
    const inner = db.faults!;
    db.faults = (call) => {
      inner(call);
      const keys = requests.at(-1)!;
      const bad = (index: number): boolean => keys[index] === "a#1/2";
      return broken && keys.includes("a#1/2") ? { kind: "unprocessed", select: bad } : undefined;
    };
    const { lane: one } = lane();
    one.push(row("a", 1, { payload: new Uint8Array(2 * ONE_MB) }));
    pushAll(one, "a", 2, 30);
    await clock.advance(30_000);
    assert.equal(one.pendingItems, 1);
    assert.ok(one.pendingBytes > 2 * ONE_MB, "the payload is in memory until the head is written");
    assert.equal(claimOf(one), undefined);
    assert.ok(!stored().has("a/1") && stored().has("a/30"));
    broken = false;
    await clock.advance(10_000);
    assert.equal(claimOf(one), 30n);
  });

  it("and its repetition are written one after the other", async () => {
    const { clock, db, lane, requests } = bench();
    const { lane: one } = lane();
    one.push(row("a", 1, { payload: "x".repeat(ONE_MB) }));
    one.push(row("a", 1, { payload: "y".repeat(ONE_MB) }));
    one.push(row("a", 1, { payload: "small" }));
    one.push(row("a", 2));
    await clock.advance(10_000);
    assert.equal(one.pendingItems, 0);
    assert.equal(claimOf(one), 2n);
    assert.equal(db.items(TABLE).find((item) => item["connection_id"]?.S === "a")?.["payload"]?.S, "small");
    assert.deepEqual(requests.flat().filter((key) => key.startsWith("a#1/1")).length, 2);
  });

  it("does not starve small messages of other lanes", async () => {
    const { clock, lane } = bench({ settings: { concurrency: 1 }, faults: () => ({ kind: "delay", ms: 10 }) });
    lane().lane.push(row("a", 1, { payload: new Uint8Array(30 * ONE_MB) }));
    await clock.settle();
    const { lane: small } = lane();
    small.push(row("b", 1));
    await clock.advance(25);
    assert.equal(claimOf(small), 1n);
  });

  it("of which a part is refused is given up alone", async () => {
    let n = 0;
    const { clock, db, lane, requests, stored, writer } = bench({ settings: { concurrency: 2 } });
    const refusal = Object.assign(new Error("One or more parameter values were invalid"), {
      name: "ValidationException",
    });
    const inner = db.faults!;
    db.faults = (call) => {
      inner(call);
      const keys = requests.at(-1)!;
      // No real part is ever refused; the hook stands for a rule of the service that nobody knows of.
      if (keys.includes("a#1/6")) throw refusal;
      return n++ === 0 ? { kind: "unprocessed", select: (index) => index > 0 } : { kind: "delay", ms: 20 };
    };
    const { lane: one, told } = lane();
    one.push(row("a", 1, { payload: new Uint8Array(12 * ONE_MB) }));
    pushAll(one, "a", 2, 40);
    const { lane: other } = lane();
    pushAll(other, "b", 1, 40);
    await clock.advance(60_000);
    assert.deepEqual(told.refused, [{ seq: 1n, problem: refusal.message }]);
    assert.equal(claimOf(other), 40n);
    assert.equal(one.pendingItems, 0);
    assert.equal(writer.pendingBytes, 0);
    assert.ok(stored().has("a/40") && !stored().has("a/1"));
    assert.ok(requests.flat().filter((key) => key.startsWith("a#1/")).length < 34, "what is left is not sent any more");
    assert.equal(clock.pendingTimers, 0);
  });

  it("of which a part is refused frees its key, also when other parts come back unprocessed later", async () => {
    const { clock, db, requests } = bench();
    const refusal = Object.assign(new Error("a rule nobody knows of"), { name: "ValidationException" });
    const inner = db.faults!;
    db.faults = (call) => {
      inner(call);
      if (requests.at(-1)!.includes("a#1/6")) throw refusal;
      return call.n === 1 ? { kind: "unprocessed", select: (index) => index > 0 } : undefined;
    };
    // The first answer is held up on its way.
    const client = db.client();
    const send = client.send.bind(client) as (command: unknown) => Promise<object>;
    let n = 0;
    const holding = {
      send: async (command: unknown) => {
        const first = ++n === 1;
        const output = await send(command);
        if (first) await sleep(clock, 500);
        return output;
      },
    };
    const writer = makeWriter({ client: holding as unknown as DynamoDBClient, clock, counts: new Counts() });
    const one = writer.lane(new Told());
    one.push(row("a", 1, { payload: new Uint8Array(3 * ONE_MB) }));
    one.push(row("a", 1, { payload: "small" }));
    await clock.advance(10_000);
    assert.equal(one.pendingItems, 0);
    one.push(row("a", 1, { payload: "smaller" }));
    await clock.advance(10_000);
    assert.equal(one.pendingItems, 0);
    assert.equal(db.items(TABLE).find((item) => item["connection_id"]?.S === "a")?.["payload"]?.S, "smaller");
  });
});
