import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { renew, type RenewRequest } from "../../../../shared/lease/index.ts";
import { EPOCH, freeItem, heldItem, LEASE_MS, ME, NOW_MS, OTHER, without } from "./items.ts";
import type { ContractStore } from "./store.ts";

/** The largest integer of 38 digits: the most that DynamoDB keeps exactly. */
const LARGEST_POSITION = 10n ** 38n - 1n;

export function renewContract(store: ContractStore): void {
  const LATER_MS = NOW_MS + LEASE_MS + 5000;
  const tryRenew = (connectionId: string, more: Partial<RenewRequest> = {}) =>
    renew(store.table, { connectionId, owner: ME, epoch: EPOCH, expiresAtMs: LATER_MS, ...more });

  describe("renew", () => {
    it("moves the expiry and nothing else", async () => {
      const before = heldItem(store.newId());
      const id = await store.put(before);
      const outcome = await tryRenew(id);
      const after = { ...before, lease_expires_at_ms: { N: String(LATER_MS) } };
      assert.deepEqual(await store.get(id), after);
      assert.deepEqual(outcome, { kind: "held", value: { expiresAtMs: LATER_MS, item: after, written: true } });
    });

    it("brings back a STOP and changed settings, and goes on holding", async () => {
      const changed = {
        desired_state: { S: "STOPPED" },
        ws_url: { S: "wss://feed.test/elsewhere" },
        upstream: { M: { position: { M: { pointer: { S: "/p" }, kind: { S: "sequence" } } } } },
      };
      const id = await store.put(heldItem(store.newId(), {}, changed));
      const outcome = await tryRenew(id);
      assert.equal(outcome.kind, "held");
      assert.deepEqual(
        [outcome.value.item["desired_state"], outcome.value.item["ws_url"], outcome.value.item["upstream"]],
        [changed.desired_state, changed.ws_url, changed.upstream],
      );
    });

    for (const lastSeq of [0n, 2n ** 53n + 1n, LARGEST_POSITION]) {
      it(`stores the checkpoint ${lastSeq} exactly, with its cursor, in the same write`, async () => {
        const id = await store.put(without(heldItem(store.newId()), "last_seq", "last_cursor"));
        const outcome = await tryRenew(id, { checkpoint: { lastSeq, lastCursor: `at ${lastSeq} ✓` } });
        const after = await store.get(id);
        assert.equal(after?.["last_seq"]?.N, lastSeq.toString());
        assert.equal(after["last_cursor"]?.S, `at ${lastSeq} ✓`);
        assert.equal(after["lease_expires_at_ms"]?.N, String(LATER_MS));
        assert.deepEqual(outcome.kind === "held" && outcome.value.item, after);
      });
    }

    it("leaves the stored cursor alone where the checkpoint has none", async () => {
      const id = await store.put(heldItem(store.newId()));
      await tryRenew(id, { checkpoint: { lastSeq: 42n } });
      const after = await store.get(id);
      assert.deepEqual([after?.["last_seq"]?.N, after?.["last_cursor"]?.S], ["42", "cursor-41"]);
    });

    it("clears the failures only when told to", async () => {
      const id = await store.put(heldItem(store.newId()));
      await tryRenew(id, { clearFailures: false });
      assert.equal((await store.get(id))?.["failure_count"]?.N, "3");

      await tryRenew(id, { clearFailures: true, expiresAtMs: LATER_MS + 1 });
      const after = await store.get(id);
      assert.deepEqual([after?.["failure_count"]?.N, after?.["last_error"]], ["0", undefined]);
    });

    for (const [what, holder] of [
      ["an older epoch under the same name", { epoch: EPOCH - 1n }],
      ["a newer epoch under the same name", { epoch: EPOCH + 1n }],
      ["the same epoch under another name", { owner: OTHER }],
    ] as const) {
      it(`is refused to ${what}, checkpoint included`, async () => {
        const item = heldItem(store.newId());
        const id = await store.put(item);
        const outcome = await store.unchanged(id, () =>
          tryRenew(id, { ...holder, checkpoint: { lastSeq: 99n, lastCursor: "x" }, clearFailures: true }),
        );
        assert.deepEqual(outcome, { kind: "lost", reason: "owned", item });
      });
    }

    it("is not taken for a late one of the same life where another name holds the same epoch for longer", async () => {
      const item = heldItem(store.newId(), { owner: OTHER, expiresAtMs: LATER_MS + 1 });
      const id = await store.put(item);
      assert.deepEqual(await store.unchanged(id, () => tryRenew(id)), { kind: "lost", reason: "owned", item });
    });

    it("does not revive a lease that was given back under the same epoch", async () => {
      const item = freeItem(store.newId(), { lease_epoch: { N: EPOCH.toString() } });
      const id = await store.put(item);
      const outcome = await store.unchanged(id, () => tryRenew(id, { checkpoint: { lastSeq: 99n } }));
      assert.deepEqual(outcome, { kind: "lost", reason: "parked", item });
    });

    it("is lost when the item is gone, and creates none", async () => {
      const id = store.newId();
      const outcome = await store.unchanged(id, () => tryRenew(id, { checkpoint: { lastSeq: 1n } }));
      assert.deepEqual(outcome, { kind: "lost", reason: "gone", item: undefined });
    });

    it("passes again when it is sent again", async () => {
      const id = await store.put(heldItem(store.newId()));
      const first = await tryRenew(id, { checkpoint: { lastSeq: 50n } });
      assert.deepEqual(await store.unchanged(id, () => tryRenew(id, { checkpoint: { lastSeq: 50n } })), first);
    });

    it("writes nothing when it comes later than a newer one of the same life, and is not a loss", async () => {
      const id = await store.put(heldItem(store.newId(), { expiresAtMs: LATER_MS + 1 }));
      const outcome = await store.unchanged(id, () => tryRenew(id, { checkpoint: { lastSeq: 1n } }));
      const item = await store.get(id);
      assert.deepEqual(outcome, { kind: "held", value: { expiresAtMs: LATER_MS + 1, item, written: false } });
    });

    it("gives an item without an expiry one again", async () => {
      const id = await store.put(without(heldItem(store.newId()), "lease_expires_at_ms"));
      const outcome = await tryRenew(id);
      assert.equal(outcome.kind === "held" && outcome.value.written, true);
      assert.equal((await store.get(id))?.["lease_expires_at_ms"]?.N, String(LATER_MS));
    });
  });
}
