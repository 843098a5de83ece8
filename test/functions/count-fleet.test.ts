import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { countFleet } from "../../functions/core/count-fleet.ts";
import { FreeSince } from "../../functions/core/free-since.ts";
import { fakeConnections } from "../support/fake-connections.ts";
import { connection, store } from "./support/connections.ts";

const NOW_MS = 1_767_000_000_000;

describe("countFleet", () => {
  it("keeps the ages of released connections when a page cannot be read", async () => {
    const { table, dynamoDb } = fakeConnections();
    await store(table, ...["a", "b", "c", "d"].map((id) => connection(id)));
    const freeSince = new FreeSince(100);
    const countAt = (nowMs: number) => countFleet(table, freeSince, { nowMs, skewMs: 1_000, pageSize: 2 });
    assert.equal((await countAt(NOW_MS)).oldestOrphanAgeMs, 0);
    let queries = 0;
    dynamoDb.faults = () => (++queries === 2 ? { kind: "throttle" } : undefined);
    await assert.rejects(countAt(NOW_MS + 30_000), { name: "ProvisionedThroughputExceededException" });
    assert.equal(queries, 2, "the second page failed");
    dynamoDb.faults = undefined;
    assert.equal(freeSince.size, 4);
    assert.equal((await countAt(NOW_MS + 60_000)).oldestOrphanAgeMs, 60_000);
  });

  it("reads the index alone", async () => {
    const { table, dynamoDb } = fakeConnections();
    await store(table, ...["a", "b", "c"].map((id) => connection(id)));
    const operations: string[] = [];
    dynamoDb.faults = ({ operation, input }) => {
      operations.push(`${operation} ${String((input as { IndexName?: string }).IndexName)}`);
      return undefined;
    };
    await countFleet(table, new FreeSince(100), { nowMs: NOW_MS, skewMs: 1_000, pageSize: 100 });
    assert.deepEqual(operations, ["Query by_state"]);
  });
});
