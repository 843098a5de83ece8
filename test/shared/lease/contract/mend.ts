import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { RawItem } from "../../../../shared/connection/item.ts";
import { mend, renew } from "../../../../shared/lease/index.ts";
import { EPOCH, freeItem, heldItem, LEASE_MS, ME, NOW_MS, OTHER, without } from "./items.ts";
import type { ContractStore } from "./store.ts";

const ABSURD = { lease_expires_at_ms: { N: "99999999999999999999999999999999999999" } };

export function mendContract(store: ContractStore): void {
  const tryMend = (connectionId: string, seen: RawItem) =>
    mend(store.table, { connectionId, seen, nowMs: NOW_MS, leaseMs: LEASE_MS });

  describe("mend", () => {
    for (const [what, seen, expiry] of [
      ["a missing expiry without owner", (id: string) => without(freeItem(id), "lease_expires_at_ms"), 0],
      ["an absurd expiry without owner", (id: string) => freeItem(id, ABSURD), 0],
      ["a missing expiry with owner", (id: string) => without(heldItem(id), "lease_expires_at_ms"), NOW_MS + LEASE_MS],
      ["an absurd expiry with owner", (id: string) => heldItem(id, {}, ABSURD), NOW_MS + LEASE_MS],
    ] as const) {
      it(`sets ${what} to ${expiry === 0 ? "free" : "the end of a whole lease"}, and only that`, async () => {
        const item = seen(store.newId());
        const id = await store.put(item);
        assert.deepEqual(await tryMend(id, item), { kind: "held", value: undefined });
        assert.deepEqual(await store.get(id), { ...item, lease_expires_at_ms: { N: String(expiry) } });
      });

      it(`recognises its own success on ${what} when it is sent again`, async () => {
        const item = seen(store.newId());
        const id = await store.put(item);
        await tryMend(id, item);
        assert.equal((await store.unchanged(id, () => tryMend(id, item))).kind, "held");
      });
    }

    it("changes nothing once the expiry or the owner is another than the one seen", async () => {
      const bare = without(heldItem(store.newId()), "lease_expires_at_ms");
      const absurd = heldItem(store.newId(), {}, ABSURD);
      const ownerless = freeItem(store.newId(), ABSURD);
      const mendedMs = NOW_MS + LEASE_MS;
      for (const [seen, now, reason] of [
        [bare, heldItem(bare["connection_id"]!.S!, { expiresAtMs: NOW_MS + 7 }), "owned"],
        [bare, without(freeItem(bare["connection_id"]!.S!), "lease_expires_at_ms"), "parked"],
        [bare, without(heldItem(bare["connection_id"]!.S!, { owner: OTHER }), "lease_expires_at_ms"), "owned"],
        [bare, heldItem(bare["connection_id"]!.S!, { owner: OTHER, expiresAtMs: mendedMs }), "owned"],
        [absurd, heldItem(absurd["connection_id"]!.S!, { expiresAtMs: NOW_MS + 7 }), "owned"],
        [absurd, heldItem(absurd["connection_id"]!.S!, { owner: OTHER }, ABSURD), "owned"],
        [ownerless, heldItem(ownerless["connection_id"]!.S!, {}, ABSURD), "owned"],
      ] as const) {
        const id = await store.put(now);
        const outcome = await store.unchanged(id, () => tryMend(id, seen));
        assert.deepEqual(outcome, { kind: "lost", reason, item: now });
      }
    });

    it("creates nothing", async () => {
      const id = store.newId();
      for (const seen of [without(freeItem(id), "lease_expires_at_ms"), heldItem(id, {}, ABSURD)]) {
        const outcome = await store.unchanged(id, () => tryMend(id, seen));
        assert.deepEqual(outcome, { kind: "lost", reason: "gone", item: undefined });
      }
    });

    it("does not stop a living holder: its next renewal is held", async () => {
      const item = heldItem(store.newId(), {}, ABSURD);
      const id = await store.put(item);
      const holder = { connectionId: id, owner: ME, epoch: EPOCH };
      const before = await renew(store.table, { ...holder, expiresAtMs: NOW_MS + LEASE_MS - 500 });
      assert.equal(before.kind === "held" && before.value.written, false);
      await tryMend(id, item);
      // This holder's clock is behind the audit's: its own expiry would be earlier than the mended one.
      const behind = await renew(store.table, { ...holder, expiresAtMs: NOW_MS + LEASE_MS - 400 });
      assert.equal(behind.kind === "held" && behind.value.written, false);
      const ahead = await renew(store.table, { ...holder, expiresAtMs: NOW_MS + LEASE_MS + 5000 });
      assert.equal(ahead.kind === "held" && ahead.value.written, true);
    });
  });
}
