import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { acquire, park, release, type Checkpoint, type Holder, type Outcome } from "../../../../shared/lease/index.ts";
import { MAX_ERROR_LENGTH } from "../../../../shared/lease/park.ts";
import { EPOCH, freeItem, heldItem, LEASE_MS, ME, NOW_MS, OTHER, SKEW_MS, without } from "./items.ts";
import type { ContractStore } from "./store.ts";

const UNTIL_MS = NOW_MS + 600_000;

/** Release and park are the same write but for the expiry and the reason: what holds for one holds for the other. */
export function freeContract(store: ContractStore): void {
  const releaseIt = (holder: Holder, checkpoint?: Checkpoint) =>
    release(store.table, { ...holder, ...(checkpoint === undefined ? {} : { checkpoint }) });
  const parkIt = (holder: Holder, checkpoint?: Checkpoint, error = "HTTP 403", untilMs = UNTIL_MS) =>
    park(store.table, { ...holder, untilMs, error, ...(checkpoint === undefined ? {} : { checkpoint }) });

  for (const [name, free, expiry] of [
    ["release", releaseIt, "0"],
    ["park", parkIt, String(UNTIL_MS)],
  ] as const) {
    const tryFree = (connectionId: string, more: Partial<Holder> = {}, checkpoint?: Checkpoint) =>
      free({ connectionId, owner: ME, epoch: EPOCH, ...more }, checkpoint);

    describe(name, () => {
      it("removes the owner, keeps the epoch and stores the final checkpoint in one write", async () => {
        const id = await store.put(heldItem(store.newId()));
        const checkpoint = { lastSeq: 10n ** 38n - 1n, lastCursor: "end" };
        assert.deepEqual(await tryFree(id, {}, checkpoint), { kind: "held", value: undefined });
        const after = await store.get(id);
        assert.equal(after?.["lease_owner"], undefined);
        assert.equal(after?.["lease_expires_at_ms"]?.N, expiry);
        assert.equal(after["lease_epoch"]?.N, EPOCH.toString());
        assert.equal(after["last_seq"]?.N, checkpoint.lastSeq.toString());
        assert.equal(after["last_cursor"]?.S, "end");
      });

      it("leaves the stored checkpoint alone without one", async () => {
        const id = await store.put(heldItem(store.newId()));
        await tryFree(id);
        const after = await store.get(id);
        assert.deepEqual([after?.["last_seq"]?.N, after?.["last_cursor"]?.S], ["41", "cursor-41"]);
      });

      it("works on a stopped connection and on one whose expiry is missing", async () => {
        const stopped = await store.put(heldItem(store.newId(), {}, { desired_state: { S: "STOPPED" } }));
        const bare = await store.put(without(heldItem(store.newId()), "lease_expires_at_ms"));
        for (const id of [stopped, bare]) {
          assert.equal((await tryFree(id)).kind, "held");
          assert.equal((await store.get(id))?.["lease_expires_at_ms"]?.N, expiry);
        }
      });

      for (const [what, holder] of [
        ["an older epoch under the same name", { epoch: EPOCH - 1n }],
        ["a newer epoch under the same name", { epoch: EPOCH + 1n }],
        ["the same epoch under another name", { owner: OTHER }],
      ] as const) {
        it(`is refused to ${what}`, async () => {
          const item = heldItem(store.newId());
          const id = await store.put(item);
          const outcome = await store.unchanged(id, () => tryFree(id, holder, { lastSeq: 99n }));
          assert.deepEqual(outcome, { kind: "lost", reason: "owned", item });
        });
      }

      it("is lost when the item is gone, and creates none", async () => {
        const id = store.newId();
        const outcome = await store.unchanged(id, () => tryFree(id, {}, { lastSeq: 1n }));
        assert.deepEqual(outcome, { kind: "lost", reason: "gone", item: undefined });
      });

      it("recognises its own success when it is sent again", async () => {
        const id = await store.put(heldItem(store.newId()));
        await tryFree(id, {}, { lastSeq: 60n });
        assert.equal((await store.unchanged(id, () => tryFree(id, {}, { lastSeq: 60n }))).kind, "held");
      });

      it("is lost when the next owner came in between", async () => {
        const id = await store.put(heldItem(store.newId()));
        await tryFree(id);
        const nowMs = Number(expiry) + NOW_MS + SKEW_MS + 1;
        const next = await acquire(store.table, {
          connectionId: id,
          owner: OTHER,
          nowMs,
          leaseMs: LEASE_MS,
          skewMs: SKEW_MS,
        });
        assert.equal(next.kind, "held");
        const outcome = await store.unchanged(id, () => tryFree(id));
        assert.equal(lostReason(outcome), "owned");
      });

      it("is not taken for done where another name holds the same epoch until the time that was asked for", async () => {
        const item = heldItem(store.newId(), { owner: OTHER, expiresAtMs: Number(expiry) });
        const id = await store.put(item);
        assert.deepEqual(await store.unchanged(id, () => tryFree(id)), { kind: "lost", reason: "owned", item });
      });

      it("is lost when it is free under another epoch or until another time", async () => {
        const otherEpoch = freeItem(store.newId(), { lease_expires_at_ms: { N: expiry } });
        const otherTime = freeItem(store.newId(), {
          lease_epoch: { N: EPOCH.toString() },
          lease_expires_at_ms: { N: "5" },
        });
        for (const item of [otherEpoch, otherTime]) {
          const id = await store.put(item);
          assert.equal(lostReason(await store.unchanged(id, () => tryFree(id))), "parked");
        }
      });
    });
  }

  describe("park", () => {
    const holder = (connectionId: string): Holder => ({ connectionId, owner: ME, epoch: EPOCH });

    it("says why and counts the failure, also the first one, and counts it once when sent twice", async () => {
      const third = await store.put(heldItem(store.newId()));
      const first = await store.put(without(heldItem(store.newId()), "failure_count", "last_error"));
      for (const [id, count] of [
        [third, "4"],
        [first, "1"],
      ] as const) {
        await parkIt(holder(id));
        await parkIt(holder(id));
        const after = await store.get(id);
        assert.deepEqual([after?.["failure_count"]?.N, after?.["last_error"]?.S], [count, "HTTP 403"]);
      }
    });

    it("without a reason is only a time: it touches neither the last reason nor the count", async () => {
      const odd = { failure_count: { S: "three" } };
      const before = heldItem(store.newId(), {}, odd);
      const id = await store.put(before);
      assert.equal((await park(store.table, { ...holder(id), untilMs: UNTIL_MS })).kind, "held");
      const after = { ...without(before, "lease_owner"), lease_expires_at_ms: { N: String(UNTIL_MS) } };
      assert.deepEqual(await store.get(id), after);
    });

    it("keeps the failures when it is not a park", async () => {
      const id = await store.put(heldItem(store.newId()));
      await releaseIt(holder(id));
      const after = await store.get(id);
      assert.deepEqual([after?.["failure_count"]?.N, after?.["last_error"]?.S], ["3", "was refused once"]);
    });

    it("cuts a long reason", async () => {
      const id = await store.put(heldItem(store.newId()));
      await parkIt(holder(id), undefined, "x".repeat(100_000));
      assert.equal((await store.get(id))?.["last_error"]?.S, "x".repeat(MAX_ERROR_LENGTH));
    });

    it("never sends half a character, which the store would refuse", async () => {
      const id = await store.put(heldItem(store.newId()));
      const outcome = await parkIt(holder(id), undefined, `${"x".repeat(MAX_ERROR_LENGTH - 1)}😀`);
      assert.equal(outcome.kind, "held");
      const stored = (await store.get(id))?.["last_error"]?.S ?? "";
      assert.equal(stored.slice(0, MAX_ERROR_LENGTH - 1), "x".repeat(MAX_ERROR_LENGTH - 1));
      assert.equal(stored.isWellFormed(), true);
      assert.ok(stored.length <= MAX_ERROR_LENGTH);
    });
  });
}

function lostReason(outcome: Outcome<undefined>): string | undefined {
  return outcome.kind === "lost" ? outcome.reason : outcome.kind;
}
