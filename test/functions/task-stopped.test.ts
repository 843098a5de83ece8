import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { LeaseTable } from "../../shared/lease/index.ts";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../support/embedded-dynamodb.ts";
import { connection, ownedBy, STOPPED, store, stored } from "./support/connections.ts";
import { CLUSTER_ARN, crashedTask, TASK_ID, taskEvent } from "./support/ecs-events.ts";
import { coldStart, lambdaContext } from "./support/invocation.ts";

const TIMEOUT_MS = 120_000;
const LEASES = 25;

let dynamoDb: EmbeddedDynamoDb;
let table: LeaseTable;
before(async () => {
  dynamoDb = await startEmbeddedDynamoDb();
});
after(async () => {
  await dynamoDb.stop();
});

async function load(cluster = CLUSTER_ARN) {
  table = { client: dynamoDb.client, tableName: await dynamoDb.createTable("ConnectionsTable") };
  return coldStart("task-stopped", { WS_FLEET_CONNECTIONS_TABLE: table.tableName, WS_FLEET_CLUSTER: cluster });
}

const untilMs = () => Date.now() + 600_000;
const held = (i: number) => connection(`c-${i}`, { ...ownedBy(TASK_ID, untilMs()), last_seq: { N: "41" } });

describe("task-stopped", () => {
  it("frees all leases of a dead task and touches nothing else, however often and in whatever order events come", async () => {
    const handler = await load();
    await store(
      table,
      ...Array.from({ length: LEASES }, (_, i) => held(i)),
      connection("stopped", { ...ownedBy(TASK_ID, untilMs()), ...STOPPED }),
      connection("other", ownedBy("task-alive", untilMs())),
      connection("parked", { lease_expires_at_ms: { N: String(untilMs()) } }),
    );
    const others = async () => [await stored(table, "other"), await stored(table, "parked")];
    const before = await others();
    const draining = taskEvent("STOPPED", "STOPPING", { lastStatus: "RUNNING" }, { version: 5 });
    const deprovisioning = crashedTask({ version: 6 });
    const stopped = taskEvent("STOPPED", "STOPPED", { lastStatus: "STOPPED", exitCode: 137 }, { version: 7 });

    await handler(draining, lambdaContext(TIMEOUT_MS));
    assert.equal((await stored(table, "c-0"))?.["lease_owner"]?.S, TASK_ID, "a draining task keeps its leases");

    // The last event first, then the one before it, twice, and the oldest.
    for (const event of [stopped, deprovisioning, deprovisioning, draining]) {
      await handler(event, lambdaContext(TIMEOUT_MS));
    }
    for (const id of [...Array.from({ length: LEASES }, (_, i) => `c-${i}`), "stopped"]) {
      const item = await stored(table, id);
      assert.equal(item?.["lease_owner"], undefined, id);
      assert.equal(item?.["lease_expires_at_ms"]?.N, "0", id);
      assert.equal(item["lease_epoch"]?.N, "7", "the epoch only moves with an acquire");
    }
    assert.equal((await stored(table, "c-3"))?.["last_seq"]?.N, "41", "what is stored stays known");
    assert.deepEqual(await others(), before);
  });

  it("leaves a task without an exit code, and one of another service, to expire", async () => {
    const handler = await load("ws-fleet-test");
    await store(table, held(1));
    const before = await stored(table, "c-1");
    await handler(taskEvent("STOPPED", "STOPPED", { lastStatus: "STOPPED" }), lambdaContext(TIMEOUT_MS));
    await handler(crashedTask({ group: "service:other" }), lambdaContext(TIMEOUT_MS));
    await handler(crashedTask({ clusterArn: `${CLUSTER_ARN}-2` }), lambdaContext(TIMEOUT_MS));
    assert.deepEqual(await stored(table, "c-1"), before);
    await handler(crashedTask(), lambdaContext(TIMEOUT_MS));
    assert.equal((await stored(table, "c-1"))?.["lease_owner"], undefined, "the cluster may be set by name, too");
  });

  it("refuses an event of another kind, naming field and rule", async () => {
    const handler = await load();
    await assert.rejects(handler({ source: "aws.ecs" }, lambdaContext(TIMEOUT_MS)), {
      name: "EventShapeError",
      message: /detail-type: .*; detail: /,
    });
  });

  it("does not start without its settings", async () => {
    await assert.rejects(
      coldStart("task-stopped", {}),
      /WS_FLEET_CONNECTIONS_TABLE.*\n.*WS_FLEET_CLUSTER: must be set/,
    );
  });
});
