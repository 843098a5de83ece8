import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { LeaseTable } from "../../shared/lease/index.ts";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../support/embedded-dynamodb.ts";
import { connection, expiry, store, stored } from "./support/connections.ts";
import { httpEndpoint, type HttpEndpoint } from "./support/http-endpoint.ts";
import { coldStart, lambdaContext, SCHEDULED_EVENT } from "./support/invocation.ts";

const TIMEOUT_MS = 840_000;

let dynamoDb: EmbeddedDynamoDb;
let table: LeaseTable;
let metrics: HttpEndpoint;
before(async () => {
  dynamoDb = await startEmbeddedDynamoDb();
  table = { client: dynamoDb.client, tableName: await dynamoDb.createTable("ConnectionsTable") };
  metrics = await httpEndpoint(200, {});
});
after(async () => {
  await metrics.close();
  await dynamoDb.stop();
});

const load = () =>
  coldStart("audit", { WS_FLEET_CONNECTIONS_TABLE: table.tableName, WS_FLEET_METRICS_URL: metrics.url });

describe("audit", () => {
  it("mends, counts, and publishes both figures, over more than one page", async () => {
    await store(
      table,
      ...Array.from({ length: 130 }, (_, i) => connection(`c-${i}`)),
      connection("hidden", { lease_expires_at_ms: undefined }),
      connection("absurd", expiry(Number.MAX_SAFE_INTEGER)),
      connection("broken", { ws_url: { S: "nonsense" } }),
    );
    const handler = await load();
    await handler(SCHEDULED_EVENT, lambdaContext(TIMEOUT_MS));
    assert.equal((await stored(table, "hidden"))?.["lease_expires_at_ms"]?.N, "0");
    assert.equal((await stored(table, "absurd"))?.["lease_expires_at_ms"]?.N, "0");
    await handler(SCHEDULED_EVENT, lambdaContext(TIMEOUT_MS));
    const datum = (name: string, value: number) => ({ name, values: [value], counts: [1] });
    assert.deepEqual(metrics.received, [
      { source: "audit", data: [datum("MendedItems", 2), datum("MalformedItems", 1)] },
      { source: "audit", data: [datum("MendedItems", 0), datum("MalformedItems", 1)] },
    ]);
  });

  it("refuses an event of another kind, and does not start without its settings", async () => {
    const handler = await load();
    await assert.rejects(handler({}, lambdaContext(TIMEOUT_MS)), { name: "EventShapeError", message: /source: / });
    await assert.rejects(coldStart("audit", { WS_FLEET_LEASE_MS: "soon" }), (error: Error) => {
      assert.match(error.message, /WS_FLEET_LEASE_MS="soon": must be a whole number/);
      assert.match(error.message, /WS_FLEET_CONNECTIONS_TABLE: must be set/);
      return true;
    });
  });
});
