import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { acquire, renew, type AcquireRequest, type Outcome } from "../../../../shared/lease/index.ts";
import { EPOCH, freeItem, freshItem, heldItem, LEASE_MS, ME, NOW_MS, OTHER, SKEW_MS, without } from "./items.ts";
import type { ContractStore } from "./store.ts";

export function acquireContract(store: ContractStore): void {
  const request = (connectionId: string, more: Partial<AcquireRequest> = {}): AcquireRequest => ({
    connectionId,
    owner: ME,
    nowMs: NOW_MS,
    leaseMs: LEASE_MS,
    skewMs: SKEW_MS,
    ...more,
  });
  const tryAcquire = (connectionId: string, more: Partial<AcquireRequest> = {}) =>
    acquire(store.table, request(connectionId, more));
  const refused = (connectionId: string, more: Partial<AcquireRequest> = {}) =>
    store.unchanged(connectionId, () => tryAcquire(connectionId, more));

  describe("acquire", () => {
    it("takes a free connection: owner, expiry and epoch change, nothing else does", async () => {
      const before = freeItem(store.newId());
      const id = await store.put(before);
      const outcome = await tryAcquire(id);

      const after = await store.get(id);
      assert.deepEqual(after, {
        ...before,
        lease_owner: { S: ME },
        lease_expires_at_ms: { N: String(NOW_MS + LEASE_MS) },
        lease_epoch: { N: "1699999001" },
      });
      assert.deepEqual(outcome, {
        kind: "held",
        value: { epoch: 1_699_999_001n, expiresAtMs: NOW_MS + LEASE_MS, item: after },
      });
    });

    it("starts the first epoch from the wall time in seconds", async () => {
      const id = await store.put(freshItem(store.newId()));
      assert.equal(heldEpoch(await tryAcquire(id)), 1_700_000_001n);
    });

    it("raises the epoch by one each time, also where it is beyond 2^53", async () => {
      const id = await store.put(freeItem(store.newId(), { lease_epoch: { N: "9007199254740993" } }));
      assert.equal(heldEpoch(await tryAcquire(id)), 9_007_199_254_740_994n);
    });

    it("never lowers an epoch that is ahead of the clock", async () => {
      const id = await store.put(freeItem(store.newId(), { lease_epoch: { N: "4000000000" } }));
      assert.equal(heldEpoch(await tryAcquire(id)), 4_000_000_001n);
    });

    it("takes a lease of another that ended longer than the skew ago", async () => {
      const id = await store.put(heldItem(store.newId(), { owner: OTHER, expiresAtMs: NOW_MS - SKEW_MS - 1 }));
      assert.equal(heldEpoch(await tryAcquire(id)), EPOCH + 1n);
      assert.equal((await store.get(id))?.["lease_owner"]?.S, ME);
    });

    it("takes a park that is over", async () => {
      const id = await store.put(freeItem(store.newId(), { lease_expires_at_ms: { N: String(NOW_MS - SKEW_MS - 1) } }));
      assert.equal((await tryAcquire(id)).kind, "held");
    });

    it("leaves an item without an expiry to its owner, who may be alive, until the audit mends it", async () => {
      const id = await store.put(without(heldItem(store.newId(), { owner: OTHER }), "lease_expires_at_ms"));
      const outcome = await store.unchanged(id, () => tryAcquire(id));
      assert.equal(outcome.kind === "lost" && outcome.reason, "malformed");
    });

    it("takes an item whose expiry is missing: nothing else could ever end that lease", async () => {
      const id = await store.put(without(freeItem(store.newId()), "lease_expires_at_ms"));
      assert.equal((await tryAcquire(id)).kind, "held");
      assert.equal((await store.get(id))?.["lease_expires_at_ms"]?.N, String(NOW_MS + LEASE_MS));
    });

    for (const [what, offsetMs] of [
      ["ends exactly the skew ago", -SKEW_MS],
      ["ends now", 0],
      ["ends exactly twice the skew ahead", 2 * SKEW_MS],
    ] as const) {
      for (const owner of [OTHER, undefined, ME]) {
        const whose = owner === undefined ? "a park" : owner === ME ? "an own older lease" : "another's lease";
        it(`does not know yet when ${whose} ${what}`, async () => {
          const expiry = { lease_expires_at_ms: { N: String(NOW_MS + offsetMs) } };
          const id = store.newId();
          await store.put(owner === undefined ? freeItem(id, expiry) : heldItem(id, { owner }, expiry));
          const outcome = await refused(id);
          assert.equal(outcome.kind === "unknown" && outcome.reason, "expiring");
        });
      }
    }

    it("is lost to a park or a lease that ends more than twice the skew ahead", async () => {
      const expiresAtMs = NOW_MS + 2 * SKEW_MS + 1;
      const owned = heldItem(store.newId(), { owner: OTHER, expiresAtMs });
      assert.deepEqual(await refused(await store.put(owned)), { kind: "lost", reason: "owned", item: owned });

      const parked = freeItem(store.newId(), { lease_expires_at_ms: { N: String(expiresAtMs) } });
      assert.deepEqual(await refused(await store.put(parked)), { kind: "lost", reason: "parked", item: parked });
    });

    it("judges by the skew it is given", async () => {
      const id = await store.put(heldItem(store.newId(), { owner: OTHER, expiresAtMs: NOW_MS - 1 }));
      assert.equal((await refused(id, { skewMs: 1 })).kind, "unknown");
      assert.equal((await tryAcquire(id, { skewMs: 0 })).kind, "held");
    });

    it("is lost when the connection is stopped, free or not", async () => {
      const stopped = { desired_state: { S: "STOPPED" } };
      const free = freeItem(store.newId(), stopped);
      const leased = heldItem(store.newId(), { owner: OTHER }, stopped);
      const expired = heldItem(store.newId(), { owner: OTHER, expiresAtMs: NOW_MS - 60_000 }, stopped);
      for (const item of [free, leased, expired]) {
        assert.deepEqual(await refused(await store.put(item)), { kind: "lost", reason: "stopped", item });
      }
    });

    it("is lost when nobody ever said what state is wanted", async () => {
      const item = without(freeItem(store.newId()), "desired_state");
      assert.deepEqual(await refused(await store.put(item)), { kind: "lost", reason: "stopped", item });
    });

    it("is lost when the item is gone, and creates none", async () => {
      assert.deepEqual(await refused(store.newId()), { kind: "lost", reason: "gone", item: undefined });
    });

    it("is lost when the epoch has a type that cannot be counted", async () => {
      const id = await store.put(freeItem(store.newId(), { lease_epoch: { S: "seven" } }));
      const outcome = await refused(id);
      assert.equal(outcome.kind === "lost" && outcome.reason, "malformed");
    });

    it("recognises its own success when the same request is sent again", async () => {
      const id = await store.put(freeItem(store.newId()));
      const first = await tryAcquire(id);
      const again = await store.unchanged(id, () => tryAcquire(id));
      assert.equal(first.kind, "held");
      assert.deepEqual(again, first);
    });

    it("recognises its own success although the connection was stopped in between", async () => {
      const id = await store.put(freeItem(store.newId()));
      const first = await tryAcquire(id);
      const item = { ...(await store.get(id)), desired_state: { S: "STOPPED" } };
      await store.put(item);
      const again = await refused(id);
      assert.equal(heldEpoch(again), heldEpoch(first));
      assert.deepEqual(again.kind === "held" && again.value.item, item, "the holder must see the STOP");
    });

    it("does not take another's identical expiry for its own", async () => {
      const id = await store.put(freeItem(store.newId()));
      await tryAcquire(id, { owner: OTHER });
      const outcome = await refused(id);
      assert.equal(outcome.kind === "lost" && outcome.reason, "owned");
    });

    it("does not take an older life of its own name for this request; only a renewal can take it over", async () => {
      const item = heldItem(store.newId(), { expiresAtMs: NOW_MS + LEASE_MS - 7 });
      const id = await store.put(item);
      assert.deepEqual(await refused(id), { kind: "lost", reason: "own-older-life", item });

      const expiresAtMs = NOW_MS + LEASE_MS;
      const taken = await renew(store.table, { connectionId: id, owner: ME, epoch: EPOCH, expiresAtMs });
      assert.equal(taken.kind, "held");
    });

    it("takes an older life of its own name once that expired, under a new epoch", async () => {
      const id = await store.put(heldItem(store.newId(), { expiresAtMs: NOW_MS - SKEW_MS - 1 }));
      assert.equal(heldEpoch(await tryAcquire(id)), EPOCH + 1n);
    });
  });
}

function heldEpoch(outcome: Outcome<{ epoch: bigint }>): bigint {
  assert.equal(outcome.kind, "held");
  return outcome.value.epoch;
}
