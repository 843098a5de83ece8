import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { LeaseTable } from "../../shared/lease/index.ts";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../support/embedded-dynamodb.ts";
import { connection, ownedBy, store } from "./support/connections.ts";
import { startEmbeddedSqs, type EmbeddedQueue, type EmbeddedSqs } from "./support/embedded-sqs.ts";
import { coldStart, lambdaContext, SCHEDULED_EVENT } from "./support/invocation.ts";

/** Enough for one sweep, and too little for a second. */
const ONE_SWEEP_MS = 9_000;

let dynamoDb: EmbeddedDynamoDb;
let sqs: EmbeddedSqs;
let table: LeaseTable;
let queue: EmbeddedQueue;
let settings: Record<string, string>;
before(async () => {
  dynamoDb = await startEmbeddedDynamoDb();
  sqs = await startEmbeddedSqs();
  table = { client: dynamoDb.client, tableName: await dynamoDb.createTable("ConnectionsTable") };
  queue = await sqs.createQueue();
  settings = { WS_FLEET_CONNECTIONS_TABLE: table.tableName, WS_FLEET_HINT_QUEUE_URL: queue.url };
});
after(async () => {
  await dynamoDb.stop();
  await sqs.stop();
});

describe("reconcile", () => {
  it("turns orphans into hints, and remembers them from one invocation to the next", async () => {
    await store(table, connection("free"), connection("held", ownedBy("task", Date.now() + 600_000)));
    const handler = await coldStart("reconcile", settings);
    await handler(SCHEDULED_EVENT, lambdaContext(ONE_SWEEP_MS));
    const hints = await queue.drain();
    assert.deepEqual(
      hints.map(({ connectionId, reason }) => [connectionId, reason]),
      [["free", "orphaned"]],
    );
    assert.ok(Math.abs((hints[0]?.hintedAtMs ?? 0) - Date.now()) < 60_000);
    await handler(SCHEDULED_EVENT, lambdaContext(ONE_SWEEP_MS));
    assert.deepEqual(await queue.drain(), [], "hinted less than 10 s ago");
  });

  it("fails when no sweep succeeded", async () => {
    const handler = await coldStart("reconcile", { ...settings, WS_FLEET_CONNECTIONS_TABLE: "no-such-table" });
    await assert.rejects(handler(SCHEDULED_EVENT, lambdaContext(ONE_SWEEP_MS)), /every sweep .* failed \(1\)/);
  });

  it("refuses an event of another kind, naming field and rule", async () => {
    const handler = await coldStart("reconcile", settings);
    await assert.rejects(handler({ Records: [] }, lambdaContext(ONE_SWEEP_MS)), (error: Error) => {
      assert.equal(error.name, "EventShapeError");
      assert.match(error.message, /source: .*aws\.events.*detail-type: .*Scheduled Event/);
      return true;
    });
  });

  it("does not start without its settings, and names all that are missing or wrong", async () => {
    await assert.rejects(
      coldStart("reconcile", {
        WS_FLEET_HINT_QUEUE_URL: "not a url",
        WS_FLEET_SWEEP_MS: "61000",
        WS_FLEET_SWEP_MS: "1",
      }),
      (error: Error) => {
        assert.equal(error.name, "ConfigurationError");
        assert.match(error.message, /WS_FLEET_CONNECTIONS_TABLE: must be set/);
        assert.match(error.message, /WS_FLEET_HINT_QUEUE_URL.*must be an http or https URL/);
        assert.match(error.message, /WS_FLEET_SWEP_MS: no such setting/);
        return true;
      },
    );
    await assert.rejects(coldStart("reconcile", { ...settings, WS_FLEET_SWEEP_MS: "61000" }), /at most one minute/);
  });
});
