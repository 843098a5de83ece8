import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { dynamoDbClient } from "../../../shared/aws/clients.ts";
import {
  acquire,
  deleteConnection,
  mend,
  park,
  release,
  renew,
  start,
  stop,
  type LeaseTable,
} from "../../../shared/lease/index.ts";
import { pointSdkAt, startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../../support/embedded-dynamodb.ts";
import { startLossyProxy, type LossyProxy } from "../../support/lossy-proxy.ts";
import { EPOCH, freeItem, heldItem, LEASE_MS, ME, NOW_MS, SKEW_MS, without } from "./contract/items.ts";
import { ContractStore } from "./contract/store.ts";

const UNTIL_MS = NOW_MS + 600_000;
const CHECKPOINT = { lastSeq: 2n ** 60n, lastCursor: "there" };

/**
 * The SDK itself resends a request whose answer was lost, and the second attempt meets what the first one wrote. A server
 * that applied it is real here, and so is the SDK's retry.
 */
describe("a request that was applied while its answer got lost", { timeout: 120_000 }, () => {
  let dynamoDb: EmbeddedDynamoDb | undefined;
  let proxy: LossyProxy | undefined;
  let lossy: LeaseTable | undefined;
  const store = new ContractStore(async () => {
    dynamoDb = await startEmbeddedDynamoDb();
    return { client: dynamoDb.client, tableName: await dynamoDb.createTable("ConnectionsTable") };
  });
  before(async () => {
    await store.open();
    await store.get("none"); // the direct client settles on its endpoint before the SDK is pointed elsewhere
    proxy = await startLossyProxy(dynamoDb!.endpoint);
    pointSdkAt(proxy.endpoint);
    // The attempt timeout is what ends a silent attempt, and must be far above what a served one takes.
    const client = dynamoDbClient({ attemptTimeoutMs: 1500, attempts: 3, maxSockets: 4 });
    lossy = { client, tableName: store.table.tableName };
  });
  after(async () => {
    lossy?.client.destroy();
    await proxy?.stop();
    await dynamoDb?.stop();
  });

  const holder = (connectionId: string) => ({ connectionId, owner: ME, epoch: EPOCH });
  const operations = {
    acquire: {
      item: () => freeItem(store.newId(), { lease_epoch: { N: EPOCH.toString() } }),
      run: (connectionId: string) =>
        acquire(lossy!, { connectionId, owner: ME, nowMs: NOW_MS, leaseMs: LEASE_MS, skewMs: SKEW_MS }),
      effect: {
        lease_owner: { S: ME },
        lease_expires_at_ms: { N: String(NOW_MS + LEASE_MS) },
        lease_epoch: { N: (EPOCH + 1n).toString() },
      },
      removed: [],
    },
    renew: {
      item: () => heldItem(store.newId()),
      run: (connectionId: string) =>
        renew(lossy!, { ...holder(connectionId), expiresAtMs: UNTIL_MS, checkpoint: CHECKPOINT, clearFailures: true }),
      effect: {
        lease_expires_at_ms: { N: String(UNTIL_MS) },
        last_seq: { N: CHECKPOINT.lastSeq.toString() },
        last_cursor: { S: "there" },
        failure_count: { N: "0" },
      },
      removed: ["last_error"],
    },
    release: {
      item: () => heldItem(store.newId()),
      run: (connectionId: string) => release(lossy!, { ...holder(connectionId), checkpoint: CHECKPOINT }),
      effect: {
        lease_expires_at_ms: { N: "0" },
        last_seq: { N: CHECKPOINT.lastSeq.toString() },
        last_cursor: { S: "there" },
      },
      removed: ["lease_owner"],
    },
    park: {
      item: () => heldItem(store.newId()),
      run: (connectionId: string) => park(lossy!, { ...holder(connectionId), untilMs: UNTIL_MS, error: "HTTP 403" }),
      // The failure is counted once, however often it was sent.
      effect: {
        lease_expires_at_ms: { N: String(UNTIL_MS) },
        last_error: { S: "HTTP 403" },
        failure_count: { N: "4" },
      },
      removed: ["lease_owner"],
    },
    start: {
      item: () => freeItem(store.newId(), { desired_state: { S: "STOPPED" }, upstream: { M: {} } }),
      run: (connectionId: string) => start(lossy!, { connectionId, wsUrl: "wss://feed.test/new" }),
      effect: { desired_state: { S: "STARTED" }, ws_url: { S: "wss://feed.test/new" }, failure_count: { N: "0" } },
      removed: ["last_error"],
    },
    stop: {
      item: () => heldItem(store.newId()),
      run: (connectionId: string) => stop(lossy!, connectionId),
      effect: { desired_state: { S: "STOPPED" } },
      removed: [],
    },
    mend: {
      item: () => without(heldItem(store.newId()), "lease_expires_at_ms"),
      run: async (connectionId: string) => {
        const seen = (await store.get(connectionId)) ?? {};
        return mend(lossy!, { connectionId, seen, nowMs: NOW_MS, leaseMs: LEASE_MS });
      },
      effect: { lease_expires_at_ms: { N: String(NOW_MS + LEASE_MS) } },
      removed: [],
    },
  } as const;

  let servedBefore = 0;
  beforeEach(() => (servedBefore = proxy!.served.length));
  const servedNow = (): number => proxy!.served.length - servedBefore;

  for (const [name, { item, run, effect, removed }] of Object.entries(operations)) {
    for (const loss of ["reset", "error-500", "silence"] as const) {
      it(`${name} recognises its own success after ${loss}`, async () => {
        const before = item();
        const id = await store.put(before);
        proxy!.lose("UpdateItem", loss);
        assert.equal((await run(id)).kind, "held");
        assert.equal(servedNow(), 2, "the SDK has resent the request");
        assert.deepEqual(await store.get(id), { ...without(before, ...removed), ...effect });
      });
    }

    it(`${name} is unknown when all answers are lost, and recognises its own success when it is asked again`, async () => {
      const before = item();
      const id = await store.put(before);
      proxy!.lose("UpdateItem", "error-500", 3);
      const outcome = await run(id);
      assert.equal(outcome.kind === "unknown" && outcome.reason, "server");
      assert.equal(servedNow(), 3);
      const written = { ...without(before, ...removed), ...effect };
      assert.deepEqual(await store.get(id), written);
      // The audit would look at the item again; everybody else repeats what they asked for.
      if (name === "mend") return;
      assert.equal((await run(id)).kind, "held");
      assert.deepEqual(await store.get(id), written);
    });
  }

  it("acquire reports the same epoch and item as if the first answer had come", async () => {
    const id = await store.put(freeItem(store.newId(), { lease_epoch: { N: EPOCH.toString() } }));
    proxy!.lose("UpdateItem", "reset", 2);
    const outcome = await operations.acquire.run(id);
    assert.deepEqual(outcome, {
      kind: "held",
      value: { epoch: EPOCH + 1n, expiresAtMs: NOW_MS + LEASE_MS, item: await store.get(id) },
    });
    assert.equal(servedNow(), 3);
  });

  it("a delete whose answer was lost is success", async () => {
    const id = await store.put(freeItem(store.newId(), { desired_state: { S: "STOPPED" } }));
    proxy!.lose("DeleteItem", "reset");
    assert.equal((await deleteConnection(lossy!, { connectionId: id, nowMs: NOW_MS, skewMs: 1000 })).kind, "held");
    assert.equal(servedNow(), 2);
    assert.equal(await store.get(id), undefined);
  });
});
