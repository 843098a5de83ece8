import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  acquire,
  deleteConnection,
  mend,
  park,
  release,
  renew,
  start,
  stop,
  type Acquired,
  type Holder,
  type Outcome,
} from "../../../../shared/lease/index.ts";
import { LEASE_MS, ME, NOW_MS, OTHER, SKEW_MS } from "./items.ts";
import type { ContractStore } from "./store.ts";

const WS_URL = "wss://feed.test/";

/** What must hold across several owners, and across several lives of one name and of one item. */
export function livesContract(store: ContractStore): void {
  const take = async (connectionId: string, owner: string, nowMs: number): Promise<Acquired> => {
    const outcome = await acquire(store.table, { connectionId, owner, nowMs, leaseMs: LEASE_MS, skewMs: SKEW_MS });
    assert.equal(outcome.kind, "held");
    return outcome.value;
  };
  /** Everything that a holder ever writes. */
  const holderWrites = (holder: Holder): (() => Promise<Outcome<unknown>>)[] => {
    const checkpoint = { lastSeq: 777n, lastCursor: "777" };
    return [
      () => renew(store.table, { ...holder, expiresAtMs: NOW_MS + 10 * LEASE_MS, checkpoint, clearFailures: true }),
      () => renew(store.table, { ...holder, expiresAtMs: 1, checkpoint }),
      () => release(store.table, { ...holder, checkpoint }),
      () => park(store.table, { ...holder, untilMs: NOW_MS + 10 * LEASE_MS, error: "late", checkpoint }),
    ];
  };

  describe("lives", () => {
    it("no holder write brings back a deleted connection", async () => {
      const id = store.newId();
      await start(store.table, { connectionId: id, wsUrl: WS_URL });
      const { epoch } = await take(id, ME, NOW_MS);
      const item = (await store.get(id)) ?? {};
      await store.remove(id);

      const writes = [
        ...holderWrites({ connectionId: id, owner: ME, epoch }),
        () => mend(store.table, { connectionId: id, seen: item, nowMs: NOW_MS, leaseMs: LEASE_MS }),
        () => stop(store.table, id),
        () =>
          acquire(store.table, {
            connectionId: id,
            owner: ME,
            nowMs: NOW_MS + 10 * LEASE_MS,
            leaseMs: LEASE_MS,
            skewMs: 0,
          }),
      ];
      for (const write of writes) {
        assert.deepEqual(await write(), { kind: "lost", reason: "gone", item: undefined });
        assert.equal(await store.get(id), undefined);
      }
    });

    it("an item that is deleted and created again does not repeat its epochs", async () => {
      const id = store.newId();
      await start(store.table, { connectionId: id, wsUrl: WS_URL });
      const first = await take(id, ME, NOW_MS);
      await release(store.table, { connectionId: id, owner: ME, epoch: first.epoch });
      const second = await take(id, ME, NOW_MS + 5000);
      await release(store.table, { connectionId: id, owner: ME, epoch: second.epoch });
      await stop(store.table, id);
      assert.equal(
        (await deleteConnection(store.table, { connectionId: id, nowMs: NOW_MS, skewMs: 1000 })).kind,
        "held",
      );

      await start(store.table, { connectionId: id, wsUrl: WS_URL });
      const third = await take(id, ME, NOW_MS + 10_000);
      assert.ok(third.epoch > second.epoch, `${third.epoch} must be beyond ${second.epoch}`);
      for (const { epoch } of [first, second]) {
        for (const write of holderWrites({ connectionId: id, owner: ME, epoch })) {
          assert.equal((await store.unchanged(id, write)).kind, "lost");
        }
      }
    });

    it("an older life of the same name is refused everywhere, whoever holds now", async () => {
      for (const holdsNow of [ME, OTHER]) {
        const id = store.newId();
        await start(store.table, { connectionId: id, wsUrl: WS_URL });
        const old = await take(id, ME, NOW_MS);
        const current = await take(id, holdsNow, NOW_MS + LEASE_MS + SKEW_MS + 1);
        assert.equal(current.epoch, old.epoch + 1n);
        for (const write of holderWrites({ connectionId: id, owner: ME, epoch: old.epoch })) {
          const outcome = await store.unchanged(id, write);
          assert.equal(outcome.kind === "lost" && outcome.reason, "owned");
        }
      }
    });

    it("late writes of a holder whose lease was freed for it change nothing", async () => {
      const id = store.newId();
      await start(store.table, { connectionId: id, wsUrl: WS_URL });
      const mine = await take(id, ME, NOW_MS);
      await release(store.table, { connectionId: id, owner: ME, epoch: mine.epoch, checkpoint: { lastSeq: 800n } });
      for (const write of holderWrites({ connectionId: id, owner: ME, epoch: mine.epoch })) {
        await store.unchanged(id, write);
      }
    });

    it("epochs rise by one over many owners, and the written expiry of each epoch never falls", async () => {
      const id = store.newId();
      await start(store.table, { connectionId: id, wsUrl: WS_URL });
      let last: bigint | undefined;
      for (let round = 0; round < 10; round++) {
        const nowMs = NOW_MS + round * 2 * LEASE_MS;
        const { epoch, expiresAtMs } = await take(id, round % 3 === 0 ? ME : OTHER, nowMs);
        if (last !== undefined) assert.equal(epoch, last + 1n);
        last = epoch;
        const holder = { connectionId: id, owner: round % 3 === 0 ? ME : OTHER, epoch };
        for (const offsetMs of [5000, 3000, 9000, 9000, 0]) {
          const before = Number((await store.get(id))?.["lease_expires_at_ms"]?.N);
          const renewed = await renew(store.table, { ...holder, expiresAtMs: expiresAtMs + offsetMs });
          assert.equal(renewed.kind, "held");
          const after = Number((await store.get(id))?.["lease_expires_at_ms"]?.N);
          assert.ok(after >= before);
          assert.equal(renewed.value.expiresAtMs, after);
        }
        if (round % 2 === 0) await release(store.table, holder);
      }
    });
  });
}
