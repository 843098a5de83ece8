import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { RecentHints } from "../../functions/core/recent-hints.ts";
import { sweep, type SweepDeps, type SweepRequest } from "../../functions/core/sweep.ts";
import type { LeaseTable } from "../../shared/lease/index.ts";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../support/embedded-dynamodb.ts";
import { connection, expiry, ownedBy, STOPPED, store } from "./support/connections.ts";
import { startEmbeddedSqs, type EmbeddedQueue, type EmbeddedSqs } from "./support/embedded-sqs.ts";
import { recordingLogger } from "./support/log.ts";
import { stubQueue } from "./support/stub-queue.ts";

const NOW_MS = 1_767_000_000_000;
const SKEW_MS = 1_000;
const REHINT_MS = 10_000;
/** Small pages, so that every query needs several. */
const REQUEST: SweepRequest = { skewMs: SKEW_MS, pageSize: 3, maxHints: 10_000, inFlight: 4 };

let dynamoDb: EmbeddedDynamoDb;
let sqs: EmbeddedSqs;
before(async () => {
  dynamoDb = await startEmbeddedDynamoDb();
  sqs = await startEmbeddedSqs();
});
after(async () => {
  await dynamoDb.stop();
  await sqs.stop();
});

interface Bed {
  readonly table: LeaseTable;
  readonly queue: EmbeddedQueue;
  readonly recent: RecentHints;
  readonly logger: ReturnType<typeof recordingLogger>;
  readonly sweepAt: (nowMs: number, changes?: Partial<SweepDeps & SweepRequest>) => ReturnType<typeof sweep>;
}

async function bed(): Promise<Bed> {
  const table = { client: dynamoDb.client, tableName: await dynamoDb.createTable("ConnectionsTable") };
  const queue = await sqs.createQueue();
  const recent = new RecentHints(REHINT_MS, 1_000);
  const logger = recordingLogger();
  return {
    table,
    queue,
    recent,
    logger,
    sweepAt: (nowMs, changes = {}) =>
      sweep({ table, queue: queue.hints, recent, nowMs: () => nowMs, logger, ...changes }, { ...REQUEST, ...changes }),
  };
}

const ids = (hints: readonly { connectionId: string }[]) => hints.map((hint) => hint.connectionId).sort();
const orphans = (count: number) =>
  Array.from({ length: count }, (_, i) => connection(`o-${String(i).padStart(3, "0")}`, expiry(NOW_MS - 100_000 + i)));

describe("sweep", () => {
  it("hints every orphan, over all pages, and nobody else", async () => {
    const { table, queue, sweepAt } = await bed();
    const cutOffMs = NOW_MS - SKEW_MS - 1_000;
    await store(
      table,
      ...Array.from({ length: 7 }, (_, i) => connection(`free-${i}`)),
      connection("expired", ownedBy("task-dead", cutOffMs - 1)),
      connection("park-over", expiry(cutOffMs - 50_000)),
      connection("at-the-cut-off", ownedBy("task-late", cutOffMs)),
      connection("owned", ownedBy("task-alive", NOW_MS + 15_000)),
      connection("parked", expiry(NOW_MS + 60_000)),
      connection("stopped", STOPPED),
      connection("invisible", { lease_expires_at_ms: undefined }),
    );
    const result = await sweepAt(NOW_MS);
    assert.deepEqual(result, { orphans: 9, depth: 0, hinted: 9, unsent: 0, malformed: 0 });
    const hints = await queue.drain();
    assert.deepEqual(ids(hints), ["expired", ...Array.from({ length: 7 }, (_, i) => `free-${i}`), "park-over"]);
    for (const hint of hints) {
      assert.equal(hint.reason, "orphaned");
      assert.equal(hint.hintedAtMs, NOW_MS);
    }
  });

  it("hints a crowd in full batches, each orphan once", async () => {
    const { table, queue, sweepAt } = await bed();
    await store(table, ...orphans(47));
    assert.equal((await sweepAt(NOW_MS)).hinted, 47);
    assert.deepEqual(
      ids(await queue.drain()),
      ids(orphans(47).map((item) => ({ connectionId: item["connection_id"]!.S! }))),
    );
  });

  it("tops the queue up: it never holds more hints than there are orphans, and the oldest come first", async () => {
    const { table, queue, sweepAt } = await bed();
    await store(table, ...orphans(5));
    await queue.hints.sendBatch(["a", "b", "c"].map((id) => JSON.stringify({ left: id })));
    const result = await sweepAt(NOW_MS);
    assert.deepEqual(result, { orphans: 5, depth: 3, hinted: 2, unsent: 0, malformed: 0 });
    assert.equal(await queue.hints.depth(), 5);
    const again = await sweepAt(NOW_MS + REHINT_MS);
    assert.equal(again.hinted, 0, "depth is the number of orphans already");
  });

  it("takes the oldest orphans for what room there is", async () => {
    const { table, recent, sweepAt } = await bed();
    await store(table, ...orphans(5));
    const queue = stubQueue(() => [], 3);
    assert.equal((await sweepAt(NOW_MS, { queue })).hinted, 2);
    assert.deepEqual(queue.calls, [["o-000", "o-001"]]);
    assert.ok(!recent.mayHint("o-001", NOW_MS));
    assert.ok(recent.mayHint("o-002", NOW_MS), "one that found no room is free to be hinted next time");
    assert.equal((await sweepAt(NOW_MS + 1_000, { queue })).hinted, 2);
    assert.deepEqual(queue.calls[1], ["o-002", "o-003"]);
  });

  it("counts hints that a worker has received and not yet deleted", async () => {
    const { table, queue, sweepAt } = await bed();
    await store(table, ...orphans(4));
    await queue.hints.sendBatch(["a", "b", "c"].map((id) => JSON.stringify({ left: id })));
    assert.equal(await queue.hold(2), 2);
    const result = await sweepAt(NOW_MS);
    assert.equal(result.depth, 3);
    assert.equal(result.hinted, 1);
  });

  it("hints an orphan again after 10 s, and no sooner", async () => {
    const { table, queue, sweepAt } = await bed();
    await store(table, ...orphans(4));
    await sweepAt(NOW_MS);
    assert.equal((await queue.drain()).length, 4);
    assert.equal((await sweepAt(NOW_MS + REHINT_MS - 1)).hinted, 0);
    assert.equal((await sweepAt(NOW_MS + REHINT_MS)).hinted, 4);
    assert.equal((await queue.drain()).length, 4);
  });

  it("forgets hints that no longer matter", async () => {
    const { table, recent, sweepAt } = await bed();
    await store(table, ...orphans(4));
    await sweepAt(NOW_MS);
    assert.equal(recent.size, 4);
    for (const item of orphans(4)) await store(table, { ...item, ...ownedBy("task", NOW_MS + 600_000) });
    await sweepAt(NOW_MS + REHINT_MS);
    assert.equal(recent.size, 0);
  });

  it("lets no more of them wait than a sweep may hint", async () => {
    const { table, queue, sweepAt } = await bed();
    await store(table, ...orphans(8));
    const result = await sweepAt(NOW_MS, { maxHints: 5 });
    assert.equal(result.orphans, 8, "all are counted");
    assert.deepEqual(ids(await queue.drain()), ["o-000", "o-001", "o-002", "o-003", "o-004"]);
    assert.equal((await sweepAt(NOW_MS + 1_000, { maxHints: 5 })).hinted, 3, "the others follow in the next sweep");
  });

  it("leaves what the queue refuses twice for the next sweep", async () => {
    const { table, logger, sweepAt } = await bed();
    await store(table, ...orphans(4));
    const queue = stubQueue((given, call) => (call < 2 ? given.filter((id) => id === "o-002") : []));
    const first = await sweepAt(NOW_MS, { queue });
    assert.deepEqual([first.hinted, first.unsent], [3, 1]);
    assert.deepEqual(queue.calls[1], ["o-002"], "retried once");
    assert.ok(logger.lines.some(({ level, fields }) => level === "warn" && fields["unsent"] === 1));
    const second = await sweepAt(NOW_MS + 1_000, { queue });
    assert.deepEqual([second.hinted, second.unsent], [1, 0]);
    assert.deepEqual(queue.calls[2], ["o-002"]);
  });

  it("fails when hints were due and the queue took none", async () => {
    const { table, sweepAt } = await bed();
    await store(table, ...orphans(2));
    const down = new Error("connect ECONNREFUSED");
    await assert.rejects(sweepAt(NOW_MS, { queue: stubQueue(() => down) }), (error: Error) => {
      assert.match(error.message, /took none of 2 hints/);
      assert.equal(error.cause, down);
      return true;
    });
  });

  it("skips an index row whose id no worker could read, and says so", async () => {
    const { table, queue, logger, sweepAt } = await bed();
    await store(table, connection("c#parts", expiry(1)), ...orphans(2));
    const result = await sweepAt(NOW_MS);
    assert.deepEqual([result.orphans, result.malformed, result.hinted], [2, 1, 2]);
    assert.deepEqual(ids(await queue.drain()), ["o-000", "o-001"]);
    const line = logger.lines.find(({ level }) => level === "warn");
    assert.equal(line?.fields["connectionId"], "c#parts");
    assert.match(String(line.fields["problem"]), /connection_id must not contain '#'/);
  });

  it("fails when the queue cannot be asked, before it reads the index", async () => {
    const { sweepAt, table } = await bed();
    await store(table, ...orphans(1));
    const queue = { ...stubQueue(() => []), depth: () => Promise.reject(new Error("no such queue")) };
    await assert.rejects(sweepAt(NOW_MS, { queue }), /no such queue/);
    assert.deepEqual(queue.calls, []);
  });
});

describe("SqsHintQueue", () => {
  it("says which entries the queue did not take", async () => {
    const { queue } = await bed();
    assert.deepEqual(await queue.hints.sendBatch(["{}", "[]"]), []);
    // Characters outside XML's are refused for their entry alone.
    assert.deepEqual(await queue.hints.sendBatch(["ok", "\u0000", "ok"]), [1]);
  });
});
