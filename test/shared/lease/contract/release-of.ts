import { BatchWriteItemCommand } from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { releaseOf, type LeaseTable, type ReleaseOfRequest } from "../../../../shared/lease/index.ts";
import { LeapingClock } from "../../../support/leaping-clock.ts";
import { EPOCH, freeItem, heldItem, NOW_MS, OTHER, SKEW_MS } from "./items.ts";
import type { ContractStore } from "./store.ts";

export function releaseOfContract(store: ContractStore): void {
  const releaseAll = (deadTask: string, clock = new LeapingClock(NOW_MS), more: Partial<ReleaseOfRequest> = {}) =>
    releaseOf({ table: store.table, clock }, { deadTask, perSecond: 100_000, attempts: 3, ...more });

  describe("releaseOf", () => {
    it("frees what the dead task held and nothing of anybody else", async () => {
      const dead = store.newId("task");
      const held = heldItem(store.newId(), { owner: dead });
      const stopped = heldItem(store.newId(), { owner: dead }, { desired_state: { S: "STOPPED" } });
      const expired = heldItem(store.newId(), { owner: dead, expiresAtMs: NOW_MS - 10 * SKEW_MS });
      const others = heldItem(store.newId(), { owner: `${dead}-2` });
      const free = freeItem(store.newId());
      for (const item of [held, stopped, expired, others, free]) await store.put(item);

      assert.deepEqual(await releaseAll(dead), { released: 3, skipped: 0, failed: 0 });
      for (const before of [held, stopped, expired]) {
        const { lease_owner: _owner, ...kept } = before;
        const after = await store.get(before["connection_id"]!.S!);
        assert.deepEqual(after, { ...kept, lease_expires_at_ms: { N: "0" } }, "last_seq and epoch stay as they were");
      }
      for (const before of [others, free]) {
        assert.deepEqual(await store.get(before["connection_id"]!.S!), before);
      }
    });

    it("changes nothing when it is repeated, or runs twice at once", async () => {
      const dead = store.newId("task");
      const ids = await Promise.all(range(20).map(() => store.put(heldItem(store.newId(), { owner: dead }))));
      const [first, second] = await Promise.all([releaseAll(dead), releaseAll(dead)]);
      assert.equal(first.released + second.released, ids.length);
      assert.equal(first.failed + second.failed, 0);

      const after = await Promise.all(ids.map((id) => store.get(id)));
      assert.deepEqual(await releaseAll(dead), { released: 0, skipped: 0, failed: 0 });
      assert.deepEqual(await Promise.all(ids.map((id) => store.get(id))), after);
    });

    it("leaves a lease that somebody took meanwhile to its new owner", async () => {
      const dead = store.newId("task");
      const id = await store.put(heldItem(store.newId(), { owner: dead }));
      const taken = heldItem(id, { owner: OTHER, epoch: EPOCH + 1n });
      // The index was read, then the base item changed hands: the write itself must find out.
      const clock = new LeapingClock(NOW_MS);
      const table = tapped(store, (command) => (command === "QueryCommand" ? store.put(taken) : undefined));
      const counts = await releaseOf({ table, clock }, { deadTask: dead, perSecond: 1000, attempts: 3 });
      assert.deepEqual(counts, { released: 0, skipped: 1, failed: 0 });
      assert.deepEqual(await store.get(id), taken);
    });

    it("creates nothing where the item was deleted meanwhile", async () => {
      const dead = store.newId("task");
      const id = await store.put(heldItem(store.newId(), { owner: dead }));
      const table = tapped(store, (command) => (command === "QueryCommand" ? store.remove(id) : undefined));
      const clock = new LeapingClock(NOW_MS);
      const counts = await releaseOf({ table, clock }, { deadTask: dead, perSecond: 1000, attempts: 3 });
      assert.deepEqual(counts, { released: 0, skipped: 1, failed: 0 });
      assert.equal(await store.get(id), undefined);
    });

    it("keeps the pace it is told", async () => {
      const dead = store.newId("task");
      await Promise.all(range(41).map(() => store.put(heldItem(store.newId(), { owner: dead }))));
      const clock = new LeapingClock(NOW_MS);
      assert.equal((await releaseAll(dead, clock, { perSecond: 10 })).released, 41);
      const elapsedMs = clock.monotonicMs();
      assert.ok(elapsedMs >= 3990 && elapsedMs <= 4010, `41 releases at 10/s took ${elapsedMs} ms`);
    });

    it("ends early when told to, and says what it did", async () => {
      const dead = store.newId("task");
      await Promise.all(range(10).map(() => store.put(heldItem(store.newId(), { owner: dead }))));
      const abort = new AbortController();
      let updates = 0;
      const table = tapped(store, (command) => {
        if (command === "UpdateItemCommand" && ++updates === 3) abort.abort();
        return undefined;
      });
      const clock = new LeapingClock(NOW_MS);
      const counts = await releaseOf(
        { table, clock },
        { deadTask: dead, perSecond: 1, attempts: 3 },
        { signal: abort.signal },
      );
      // Requests that were on their way at the abort count as failed: nobody knows what became of them.
      assert.ok(counts.released < 10 && counts.released + counts.failed <= 10, JSON.stringify(counts));
    });

    it("reads the index over all its pages", { timeout: 120_000 }, async () => {
      const dead = store.newId("task");
      // Each index row has more than 1,000 bytes, so 1,400 of them are more than one page of 1 MB.
      const items = range(1400).map(() => heldItem(store.newId().padEnd(1000, "x"), { owner: dead }));
      for (let i = 0; i < items.length; i += 25) {
        const puts = items.slice(i, i + 25).map((Item) => ({ PutRequest: { Item } }));
        await store.table.client.send(new BatchWriteItemCommand({ RequestItems: { [store.table.tableName]: puts } }));
      }
      assert.deepEqual(await releaseAll(dead), { released: items.length, skipped: 0, failed: 0 });
      assert.deepEqual(await releaseAll(dead), { released: 0, skipped: 0, failed: 0 });
    });
  });
}

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

/** The store's table; `answered` is awaited before an answer to a command is handed on. */
function tapped(store: ContractStore, answered: (command: string) => Promise<unknown> | undefined): LeaseTable {
  const { client, tableName } = store.table;
  const send = client.send.bind(client) as (command: object, options: object) => Promise<unknown>;
  const tap = async (command: object, options: object): Promise<unknown> => {
    const answer = await send(command, options);
    await answered(command.constructor.name);
    return answer;
  };
  return { tableName, client: { send: tap } as unknown as LeaseTable["client"] };
}
