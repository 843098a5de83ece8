import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { workProblems } from "../../functions/core/audit-item.ts";
import { leaseOf, type RawItem } from "../../shared/connection/item.ts";
import { VirtualWorker } from "../worker/support/virtual-worker.ts";
import { anyConnection, put } from "./support/attributes.ts";
import { CONNECTIONS_TABLE } from "./support/stores.ts";

/** Longer than an acquire with all its attempts, shorter than a lease. */
const TAKEN_MS = 8000;
const HEARTBEATS_MS = 12_000;

/** Sound in itself, yet the keys of its messages would have more digits than DynamoDB keeps. */
const EPOCH_WITHOUT_ROOM: RawItem = {
  desired_state: { S: "STARTED" },
  ws_url: { S: "wss://feed.test/" },
  lease_expires_at_ms: { N: "0" },
  lease_epoch: { N: "9".repeat(30) },
};

const tableOf = (one: VirtualWorker) => ({ client: one.db.client(), tableName: CONNECTIONS_TABLE });

/** What an acquire must be able to take, by the words of the protocol. */
function takeable(item: RawItem, wallMs: number): boolean {
  const { desiredState, expiresAtMs, owner } = leaseOf(item);
  if (desiredState !== "STARTED") return false;
  return expiresAtMs === undefined ? owner === undefined : expiresAtMs < wallMs - 1000;
}

describe("a worker that is hinted at items of any content", () => {
  it("streams what the audit calls sound, parks the rest with a reason, and gives everything back", () =>
    fc.assert(
      fc.asyncProperty(fc.array(anyConnection, { minLength: 1, maxLength: 8 }), async (items) => {
        const one = new VirtualWorker();
        await one.worker.start();
        const whole = new Map<string, RawItem>();
        const takeables = new Map<string, readonly string[]>();
        const ids: string[] = [];
        for (const [n, item] of items.entries()) {
          const id = `c${n}`;
          if (!(await put(tableOf(one), { ...item, connection_id: { S: id } }))) continue;
          ids.push(id);
          const stored = one.item(id) ?? {};
          whole.set(id, stored);
          if (takeable(stored, one.clock.wallMs())) takeables.set(id, workProblems(stored));
        }
        await one.put("good");
        one.queue.hint(...ids, "good");
        await one.clock.advance(TAKEN_MS);
        for (const socket of one.dial.sockets) socket.open();
        // Two rounds of renewals: what was taken can be kept.
        await one.clock.advance(HEARTBEATS_MS);

        const held = new Set(one.journal.entries.filter(({ event }) => event === "open").map((e) => e.connectionId));
        assert.ok(held.has("good"), "a sound neighbour is served");
        for (const [id, problems] of takeables) {
          // The acquire alone decides what it can add to: -1 is no epoch, and after one more it is.
          if (problems.some((problem) => problem.startsWith("lease_epoch must be a non-negative"))) continue;
          assert.equal(held.has(id), problems.length === 0, `${id}: ${problems.join("; ")}`);
          // An epoch that is no more readable once it was added to ends as a lease that only expires.
          const { epoch } = leaseOf(whole.get(id) ?? {});
          if (held.has(id) || (epoch ?? 0n) >= 10n ** 38n - 1n) continue;
          const { owner, expiresAtMs } = one.lease(id);
          assert.equal(owner, undefined);
          assert.ok((expiresAtMs ?? 0) > one.clock.wallMs(), "parked, so that it does not come back at once");
        }
        assert.equal(one.worker.health()["openSockets"], held.size, "nobody was dropped");
        assert.deepEqual(
          one.logger.lines.filter(({ level }) => level === "error"),
          [],
        );
        assert.equal(one.worker.health().healthy, true);

        let clean: boolean | undefined;
        void one.worker.drain().then((answer) => (clean = answer));
        await one.clock.advanceUntil(() => clean !== undefined, 70_000);
        assert.equal(clean, true);
        for (const id of [...held]) assert.equal(one.lease(id).owner, undefined);
      }),
      {
        numRuns: 60,
        examples: [[[EPOCH_WITHOUT_ROOM]], [[{ ...EPOCH_WITHOUT_ROOM, lease_epoch: { N: "9".repeat(38) } }]]],
      },
    ));
});
