import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { releaseOf } from "../../../shared/lease/index.ts";
import { fakeConnections, type FakeConnections } from "../../support/fake-connections.ts";
import type { Fault } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { heldItem } from "./contract/items.ts";
import { ContractStore } from "./contract/store.ts";

const DEAD = "task-dead";

describe("releaseOf under faults", () => {
  let fake: FakeConnections;
  let store: ContractStore;
  beforeEach(async () => {
    fake = fakeConnections();
    store = new ContractStore(() => Promise.resolve(fake.table));
    await store.open();
    for (let i = 0; i < 5; i++) await store.put(heldItem(store.newId(), { owner: DEAD }));
  });

  /** Runs to its end over virtual time. */
  const releaseAll = async (attempts: number) => {
    let settled = false;
    const result = releaseOf({ table: fake.table, clock: fake.clock }, { deadTask: DEAD, perSecond: 1000, attempts });
    result.then(
      () => (settled = true),
      () => (settled = true),
    );
    await fake.clock.advanceUntil(() => settled, 60_000);
    return result;
  };
  const owners = () =>
    fake.dynamoDb.items(fake.table.tableName).filter((item) => item["lease_owner"] !== undefined).length;
  /** Each connection's first `times` writes are hit. */
  const hitWrites = (fault: Fault, times: number): { writes: number } => {
    const seen = new Map<string, number>();
    const count = { writes: 0 };
    fake.dynamoDb.faults = ({ operation, input }) => {
      if (operation !== "UpdateItem") return undefined;
      count.writes++;
      const key = JSON.stringify((input as { Key: unknown }).Key);
      seen.set(key, (seen.get(key) ?? 0) + 1);
      return seen.get(key)! <= times ? fault : undefined;
    };
    return count;
  };

  for (const fault of [{ kind: "throttle" }, { kind: "server-error" }] as const) {
    it(`tries again after ${fault.kind}`, async () => {
      hitWrites(fault, 2);
      assert.deepEqual(await releaseAll(3), { released: 5, skipped: 0, failed: 0 });
      assert.equal(owners(), 0);
    });

    it(`leaves a lease to expire when ${fault.kind} does not end`, async () => {
      const count = hitWrites(fault, 3);
      assert.deepEqual(await releaseAll(3), { released: 0, skipped: 0, failed: 5 });
      assert.equal(count.writes, 15);
      assert.equal(owners(), 5);
    });
  }

  it("waits longer before every further try", async () => {
    const writtenAtMs: number[] = [];
    fake.dynamoDb.faults = ({ operation, input }) => {
      if (operation !== "UpdateItem") return undefined;
      if ((input as { Key: Record<string, { S?: string }> }).Key["connection_id"]?.S !== "c-1") return undefined;
      writtenAtMs.push(fake.clock.monotonicMs());
      return { kind: "throttle" };
    };
    assert.deepEqual(await releaseAll(4), { released: 4, skipped: 0, failed: 1 });
    assert.deepEqual(writtenAtMs, [0, 100, 300, 700]);
  });

  it("does not insist without credentials", async () => {
    const count = hitWrites({ kind: "credentials" }, 100);
    assert.deepEqual(await releaseAll(3), { released: 0, skipped: 0, failed: 5 });
    assert.equal(count.writes, 5);
  });

  it("counts what was applied while the answer got lost as done by somebody", async () => {
    hitWrites({ kind: "apply-then-error" }, 1);
    const { released, skipped, failed } = await releaseAll(3);
    assert.deepEqual([released + skipped, failed], [5, 0]);
    assert.equal(owners(), 0);
  });

  it("throws when the index cannot be read", async () => {
    fake.dynamoDb.faults = ({ operation }) => (operation === "Query" ? { kind: "throttle" } : undefined);
    await assert.rejects(releaseAll(3), { name: "ProvisionedThroughputExceededException" });
    assert.equal(owners(), 5);
  });

  it("is harmless to leases that the index shows and the task no longer has, and finds late rows when repeated", async () => {
    fake = fakeConnections({ indexLagMs: 1000 });
    store = new ContractStore(() => Promise.resolve(fake.table));
    await store.open();
    const id = await store.put(heldItem(store.newId(), { owner: DEAD }));
    assert.deepEqual(await releaseAll(3), { released: 0, skipped: 0, failed: 0 });
    await fake.clock.advance(1000);
    assert.deepEqual(await releaseAll(3), { released: 1, skipped: 0, failed: 0 });
    // The index still shows the row.
    assert.deepEqual(await store.unchanged(id, () => releaseAll(3)), { released: 0, skipped: 1, failed: 0 });
  });
});
