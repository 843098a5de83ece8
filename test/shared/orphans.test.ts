import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { RawItem } from "../../shared/connection/item.ts";
import { acquire, type LeaseTable } from "../../shared/lease/index.ts";
import { orphanCutOffMs, queryOrphans, type Orphan, type OrphanQuery } from "../../shared/orphans.ts";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../support/embedded-dynamodb.ts";
import { fakeConnections } from "../support/fake-connections.ts";
import { freeItem, heldItem, LEASE_MS, ME, NOW_MS, OTHER, SKEW_MS, without } from "./lease/contract/items.ts";
import { ContractStore } from "./lease/contract/store.ts";

const CUT_OFF_MS = NOW_MS - SKEW_MS - 1000;
const query: OrphanQuery = { nowMs: NOW_MS, skewMs: SKEW_MS };

const collect = async (table: LeaseTable, more: Partial<OrphanQuery> = {}): Promise<Orphan[]> => {
  const orphans: Orphan[] = [];
  for await (const orphan of queryOrphans(table, { ...query, ...more })) orphans.push(orphan);
  return orphans;
};
const until = (ms: number): RawItem => ({ lease_expires_at_ms: { N: String(ms) } });

/** Runs against a real server and the fake: the same rows must come out. */
function orphanContract(name: string, makeTable: () => Promise<LeaseTable>, close: () => Promise<void>): void {
  describe(`orphan query: ${name}`, () => {
    const store = new ContractStore(makeTable);
    before(() => store.open());
    after(close);

    it("finds nothing in an empty table", async () => {
      assert.deepEqual(await collect(store.table), []);
    });

    it("finds what is free or expired beyond doubt, the longest waiting first, and nothing else", async () => {
      const orphans = [
        freeItem("freed"),
        freeItem("park-over", until(5)),
        heldItem("dead-owner", { owner: OTHER, expiresAtMs: CUT_OFF_MS - 60_000 }),
        heldItem("just-beyond", { owner: OTHER, expiresAtMs: CUT_OFF_MS - 1 }),
      ];
      const others = [
        heldItem("at-cut-off", { owner: OTHER, expiresAtMs: CUT_OFF_MS }),
        heldItem("held", { owner: OTHER }),
        freeItem("parked", until(NOW_MS + 60_000)),
        freeItem("stopped", { desired_state: { S: "STOPPED" } }),
        without(freeItem("invisible"), "lease_expires_at_ms"),
      ];
      for (const item of [...orphans, ...others].reverse()) await store.put(item);
      const expected = [
        { connectionId: "freed", expiredAtMs: 0 },
        { connectionId: "park-over", expiredAtMs: 5 },
        { connectionId: "dead-owner", expiredAtMs: CUT_OFF_MS - 60_000 },
        { connectionId: "just-beyond", expiredAtMs: CUT_OFF_MS - 1 },
      ];
      assert.deepEqual(await collect(store.table), expected);
      for (const pageSize of [1, 2, 3, 4, 100]) {
        assert.deepEqual(await collect(store.table, { pageSize }), expected, `in pages of ${pageSize}`);
      }
    });

    it("never shows what an acquire by any clock within the skew must still refuse", async () => {
      for (const { connectionId } of await collect(store.table)) {
        const nowMs = NOW_MS - SKEW_MS; // the acquirer's clock is behind the sweep's by the whole skew
        const outcome = await acquire(store.table, {
          connectionId,
          owner: ME,
          nowMs,
          leaseMs: LEASE_MS,
          skewMs: SKEW_MS,
        });
        assert.equal(outcome.kind, "held", connectionId);
      }
      assert.deepEqual(await collect(store.table), []);
    });

    it("reads no further page than its reader asks for", async () => {
      for (let i = 0; i < 6; i++) await store.put(freeItem(`more-${i}`));
      let pages = 0;
      const counting = {
        tableName: store.table.tableName,
        client: {
          send: (command: never, options: never) => {
            pages++;
            return store.table.client.send(command, options);
          },
        } as unknown as LeaseTable["client"],
      };
      for await (const _orphan of queryOrphans(counting, { ...query, pageSize: 2 })) break;
      assert.equal(pages, 1);
    });

    it("ends when it is told to", async () => {
      const reading = async (): Promise<void> => {
        for await (const _orphan of queryOrphans(store.table, query, { signal: AbortSignal.abort() })) {
          assert.fail("nothing may be read");
        }
      };
      await assert.rejects(reading, { name: "AbortError" });
    });
  });
}

let dynamoDb: EmbeddedDynamoDb | undefined;
orphanContract(
  "embedded server",
  async () => {
    dynamoDb = await startEmbeddedDynamoDb();
    return { client: dynamoDb.client, tableName: await dynamoDb.createTable("ConnectionsTable") };
  },
  async () => dynamoDb?.stop(),
);
orphanContract(
  "fake",
  () => Promise.resolve(fakeConnections().table),
  () => Promise.resolve(),
);

describe("orphan cut-off", () => {
  it("is a second behind what an acquire may take", () => {
    assert.equal(orphanCutOffMs(NOW_MS, 0), NOW_MS - 1000);
    assert.equal(orphanCutOffMs(NOW_MS, 1500), NOW_MS - 2500);
  });
});

describe("orphan query on a lagging index", () => {
  it("shows what was, in either direction; nothing but an acquire's condition decides", async () => {
    const fake = fakeConnections({ indexLagMs: 500 });
    const store = new ContractStore(() => Promise.resolve(fake.table));
    await store.open();
    const id = await store.put(freeItem("lagging"));
    assert.deepEqual(await collect(fake.table), []);
    await fake.clock.advance(500);
    assert.deepEqual(await collect(fake.table), [{ connectionId: id, expiredAtMs: 0 }]);

    const take = (owner: string) =>
      acquire(fake.table, { connectionId: id, owner, nowMs: NOW_MS, leaseMs: LEASE_MS, skewMs: SKEW_MS });
    assert.equal((await take(ME)).kind, "held");
    assert.equal((await collect(fake.table)).length, 1, "still shown");
    assert.equal((await take(OTHER)).kind, "lost");
    await fake.clock.advance(500);
    assert.deepEqual(await collect(fake.table), []);
  });
});
