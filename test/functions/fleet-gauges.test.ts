import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { publishFleetGauges, type FleetGaugesDeps } from "../../functions/core/fleet-gauges.ts";
import { FreeSince } from "../../functions/core/free-since.ts";
import type { RunningTasks } from "../../shared/ecs/running-tasks.ts";
import type { LeaseTable } from "../../shared/lease/index.ts";
import type { MetricDatum, MetricSink } from "../../shared/metrics/sink.ts";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../support/embedded-dynamodb.ts";
import { connection, expiry, ownedBy, STOPPED, store } from "./support/connections.ts";
import { recordingLogger } from "./support/log.ts";
import { stubQueue } from "./support/stub-queue.ts";

const NOW_MS = 1_767_000_000_000;
const SKEW_MS = 1_000;
const CUT_OFF_MS = NOW_MS - 2_000;
/** Small pages, so that counting needs several. */
const REQUEST = { skewMs: SKEW_MS, pageSize: 4 };

let dynamoDb: EmbeddedDynamoDb;
before(async () => {
  dynamoDb = await startEmbeddedDynamoDb();
});
after(async () => {
  await dynamoDb.stop();
});

/** Keeps what is published, as name → value. */
function keepingSink(): MetricSink & { readonly rounds: Record<string, number>[] } {
  const rounds: Record<string, number>[] = [];
  return {
    rounds,
    publish: (data: readonly MetricDatum[]) => {
      for (const { counts } of data) assert.deepEqual(counts, [1]);
      rounds.push(Object.fromEntries(data.map(({ name, values }) => [name, values[0]!])));
      return Promise.resolve();
    },
  };
}

const tasksOf = (count: number): RunningTasks => ({ count: () => Promise.resolve(count) });

async function bed(depth: number, tasks: RunningTasks, changes: Partial<FleetGaugesDeps> = {}) {
  const table: LeaseTable = {
    client: dynamoDb.client,
    tableName: await dynamoDb.createTable("ConnectionsTable"),
  };
  const sink = keepingSink();
  const logger = recordingLogger();
  const fixed = {
    table,
    sink,
    logger,
    tasks,
    queue: stubQueue(() => [], depth),
    freeSince: new FreeSince(100),
    ...changes,
  };
  const measureAt = (nowMs: number) => publishFleetGauges({ ...fixed, nowMs: () => nowMs }, REQUEST);
  return { table, sink, logger, measureAt };
}

describe("publishFleetGauges", () => {
  it("counts by the index, over all pages", async () => {
    const { table, sink, measureAt } = await bed(6, tasksOf(3));
    await store(
      table,
      ...Array.from({ length: 9 }, (_, i) => connection(`owned-${i}`, ownedBy("task", NOW_MS + i))),
      ...Array.from({ length: 4 }, (_, i) => connection(`free-${i}`)),
      connection("expired-owner", ownedBy("task-dead", CUT_OFF_MS - 40_000)),
      connection("park-over", expiry(CUT_OFF_MS - 1)),
      connection("parked-1", expiry(NOW_MS + 1)),
      connection("parked-2", expiry(NOW_MS + 900_000)),
      connection("just-ended", ownedBy("task", CUT_OFF_MS)),
      connection("stopped", STOPPED),
      connection("stopped-owned", { ...ownedBy("task", NOW_MS + 5_000), ...STOPPED }),
    );
    await measureAt(NOW_MS);
    assert.deepEqual(sink.rounds, [
      {
        StartedConnections: 18,
        OwnedConnections: 9,
        OrphanedConnections: 6,
        OldestOrphanAge: 42_000,
        ParkedConnections: 2,
        RunningTasks: 3,
        HintQueueDepth: 6,
        HintBacklogPerTask: 2,
        ConnectionsPerTask: 16 / 3,
      },
    ]);
  });

  it("publishes zeros for an empty fleet without tasks", async () => {
    const { sink, measureAt } = await bed(0, tasksOf(0));
    await measureAt(NOW_MS);
    assert.equal(Object.keys(sink.rounds[0]!).length, 9);
    assert.deepEqual(new Set(Object.values(sink.rounds[0]!)), new Set([0]));
  });

  it("counts the whole load for one task when none runs", async () => {
    const { table, sink, measureAt } = await bed(5, tasksOf(0));
    await store(table, connection("a"), connection("b"));
    await measureAt(NOW_MS);
    assert.equal(sink.rounds[0]?.["RunningTasks"], 0);
    assert.equal(sink.rounds[0]["ConnectionsPerTask"], 2);
    assert.equal(sink.rounds[0]["HintBacklogPerTask"], 5);
  });

  it("follows released connections from the first sight, since their expiry tells no time", async () => {
    const { table, sink, measureAt } = await bed(0, tasksOf(1));
    await store(table, connection("free"));
    await measureAt(NOW_MS);
    await measureAt(NOW_MS + 30_000);
    await store(table, connection("free", ownedBy("task", NOW_MS + 100_000)));
    await measureAt(NOW_MS + 60_000);
    await store(table, connection("free"));
    await measureAt(NOW_MS + 90_000);
    assert.deepEqual(
      sink.rounds.map((round) => round["OldestOrphanAge"]),
      [0, 30_000, 0, 0],
    );
  });

  const failing = (message: string) => () => Promise.reject(new Error(message));

  it("publishes the rest when ECS cannot be asked, logs it, and fails the round", async () => {
    const { table, sink, logger, measureAt } = await bed(2, { count: failing("ecs is down") });
    await store(table, connection("a"));
    await assert.rejects(measureAt(NOW_MS), /1 of 3 sources/);
    assert.deepEqual(Object.keys(sink.rounds[0]!).sort(), [
      "HintQueueDepth",
      "OldestOrphanAge",
      "OrphanedConnections",
      "OwnedConnections",
      "ParkedConnections",
      "StartedConnections",
    ]);
    const line = logger.lines.find(({ level }) => level === "error");
    assert.deepEqual([line?.fields["source"], line?.fields["error"]], ["running tasks", "ecs is down"]);
  });

  it("publishes the rest when the queue cannot be asked", async () => {
    const queue = { ...stubQueue(() => []), depth: failing("sqs is down") };
    const { sink, measureAt } = await bed(0, tasksOf(4), { queue });
    await assert.rejects(measureAt(NOW_MS), /1 of 3 sources/);
    const names = Object.keys(sink.rounds[0]!);
    assert.equal(names.length, 7);
    assert.ok(!names.includes("HintQueueDepth") && !names.includes("HintBacklogPerTask"));
    assert.ok(names.includes("ConnectionsPerTask"));
  });

  it("publishes the rest when the table cannot be read", async () => {
    const table = { client: dynamoDb.client, tableName: "no-such-table" };
    const { sink, measureAt } = await bed(8, tasksOf(4), { table });
    await assert.rejects(measureAt(NOW_MS), /1 of 3 sources/);
    assert.deepEqual(sink.rounds, [{ HintQueueDepth: 8, RunningTasks: 4, HintBacklogPerTask: 2 }]);
  });

  it("publishes nothing when nobody answers", async () => {
    const { sink, measureAt } = await bed(
      0,
      { count: failing("down") },
      {
        table: { client: dynamoDb.client, tableName: "no-such-table" },
        queue: { ...stubQueue(() => []), depth: failing("down") },
      },
    );
    await assert.rejects(measureAt(NOW_MS), (error: AggregateError) => {
      assert.equal(error.errors.length, 3);
      return true;
    });
    assert.deepEqual(sink.rounds, []);
  });

  it("fails when the sink takes nothing", async () => {
    const { measureAt } = await bed(0, tasksOf(1), { sink: { publish: failing("throttled") } });
    await assert.rejects(measureAt(NOW_MS), /throttled/);
  });
});
