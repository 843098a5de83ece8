import { UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HintQueue } from "../../functions/core/hint-queue.ts";
import { RecentHints } from "../../functions/core/recent-hints.ts";
import { runRounds } from "../../functions/core/rounds.ts";
import { sweep } from "../../functions/core/sweep.ts";
import { AnchoredClock } from "../../shared/clock.ts";
import { parseHint } from "../../shared/hints/hint.ts";
import { fakeConnections } from "../support/fake-connections.ts";
import { VirtualClock } from "../support/virtual-clock.ts";
import { connection, expiry, store } from "./support/connections.ts";
import { recordingLogger } from "./support/log.ts";

const TIMEOUT_MS = 60_000;

/** The control plane's sweeping over a table and a queue in virtual time; hints vanish as if workers took them at once. */
function fleet() {
  const clock = new VirtualClock();
  const { table, dynamoDb } = fakeConnections({ clock });
  const recent = new RecentHints(10_000, 1_000);
  const logger = recordingLogger();
  const hinted: { readonly id: string; readonly atMs: number; readonly stampMs: number }[] = [];
  const beganMs = clock.monotonicMs();
  const queue: HintQueue = {
    depth: () => Promise.resolve(0),
    sendBatch: (bodies) => {
      for (const body of bodies) {
        const hint = parseHint(body);
        if ("problem" in hint) throw new Error(hint.problem);
        hinted.push({ id: hint.connectionId, atMs: clock.monotonicMs() - beganMs, stampMs: hint.hintedAtMs });
      }
      return Promise.resolve([]);
    },
  };
  /** One invocation; `recent` outlives it as in a warm process. */
  const invoke = () => {
    const anchored = new AnchoredClock(clock);
    const invokedMs = clock.monotonicMs();
    const remainingMs = () => invokedMs + TIMEOUT_MS - clock.monotonicMs();
    return runRounds({ clock, remainingMs, logger }, { name: "sweep", everyMs: 10_000 }, (signal) =>
      sweep(
        { table, queue, recent, nowMs: () => anchored.nowMs(), logger },
        { skewMs: 1_000, pageSize: 2, maxHints: 100, inFlight: 2 },
        { signal },
      ),
    );
  };
  return { clock, table, dynamoDb, hinted, logger, invoke };
}

describe("the sweeps of a minute", () => {
  it("hint an orphan that nobody takes every 10 s, also across invocations", async () => {
    const { clock, table, hinted, invoke } = fleet();
    await store(table, connection("c-1"));
    const first = invoke();
    await clock.advance(60_000);
    assert.deepEqual(await first, { ran: 6, failed: 0 });
    const second = invoke();
    await clock.advance(60_000);
    await second;
    assert.deepEqual(
      hinted.map(({ atMs }) => atMs),
      Array.from({ length: 12 }, (_, i) => i * 10_000),
    );
  });

  it("find a lease that ended within the sweep interval plus the cut-off", async () => {
    const { clock, table, hinted, invoke } = fleet();
    const expiredAtMs = clock.wallMs() + 8_500;
    await store(
      table,
      connection("c-1", { lease_owner: { S: "task" }, lease_epoch: { N: "1" }, ...expiry(expiredAtMs) }),
    );
    const done = invoke();
    await clock.advance(60_000);
    await done;
    const firstMs = hinted[0]?.stampMs ?? Infinity;
    assert.ok(firstMs - expiredAtMs <= 10_000 + 3_000, `hinted ${firstMs - expiredAtMs} ms after the lease ended`);
    assert.equal(hinted[0]?.atMs, 20_000, "at 10 s the acquire would still refuse it");
  });

  it("stop hinting once the connection has an owner", async () => {
    const { clock, table, hinted, invoke } = fleet();
    await store(table, connection("c-1"));
    const done = invoke();
    await clock.advance(15_000);
    await table.client.send(
      new UpdateItemCommand({
        TableName: table.tableName,
        Key: { connection_id: { S: "c-1" } },
        UpdateExpression: "SET lease_owner = :o, lease_expires_at_ms = :e",
        ExpressionAttributeValues: { ":o": { S: "task" }, ":e": { N: String(clock.wallMs() + 600_000) } },
      }),
    );
    await clock.advance(45_000);
    await done;
    assert.deepEqual(
      hinted.map(({ atMs }) => atMs),
      [0, 10_000],
    );
  });

  it("survive an index that is throttled for a while", async () => {
    const { clock, table, dynamoDb, hinted, logger, invoke } = fleet();
    await store(table, connection("c-1"));
    dynamoDb.faults = ({ operation }) => (operation === "Query" ? { kind: "throttle" } : undefined);
    const done = invoke();
    await clock.advance(25_000);
    dynamoDb.faults = undefined;
    await clock.advance(35_000);
    assert.deepEqual(await done, { ran: 6, failed: 3 });
    assert.equal(hinted[0]?.atMs, 30_000);
    assert.equal(logger.lines.filter(({ level }) => level === "error").length, 3);
  });

  it("keep the hinted time of a machine whose wall clock is stepped meanwhile", async () => {
    const { clock, table, hinted, invoke } = fleet();
    await store(table, connection("c-1"));
    const done = invoke();
    await clock.advance(5_000);
    clock.stepWall(3_600_000);
    await clock.advance(55_000);
    await done;
    assert.equal(hinted.length, 6);
    assert.equal(hinted[5]!.stampMs - hinted[0]!.stampMs, 50_000);
  });
});
