import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { RawItem } from "../../../shared/connection/item.ts";
import { acquire, type LeaseTable } from "../../../shared/lease/index.ts";
import { freeItem, LEASE_MS, ME, NOW_MS, SKEW_MS } from "./contract/items.ts";

/**
 * An expiry of another type than N can only be in a table that was made without the index, so no table of the contract
 * takes such an item; the answer to it is made here.
 */
describe("acquire of an item whose expiry is not a number", () => {
  it("is lost as malformed, neither parked nor free", async () => {
    const item: RawItem = freeItem("c", { lease_expires_at_ms: { S: "tomorrow" } });
    const refusal = new ConditionalCheckFailedException({ message: "refused", $metadata: {}, Item: item });
    const table: LeaseTable = {
      tableName: "connections",
      client: { send: () => Promise.reject(refusal) } as unknown as LeaseTable["client"],
    };
    const request = { connectionId: "c", owner: ME, nowMs: NOW_MS, leaseMs: LEASE_MS, skewMs: SKEW_MS };
    assert.deepEqual(await acquire(table, request), { kind: "lost", reason: "malformed", item });
  });
});
