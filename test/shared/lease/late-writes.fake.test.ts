import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import {
  acquire,
  park,
  release,
  releaseOf,
  renew,
  type Acquired,
  type Holder,
  type Outcome,
} from "../../../shared/lease/index.ts";
import { fakeConnections, type FakeConnections } from "../../support/fake-connections.ts";
import { LEASE_MS, ME, NOW_MS, OTHER, SKEW_MS, freeItem } from "./contract/items.ts";
import { ContractStore } from "./contract/store.ts";

const LATE_MS = 10_000;

/** A request may be applied long after its sender gave up on it: against whatever the item has become. */
describe("writes that arrive late", () => {
  let fake: FakeConnections;
  let store: ContractStore;
  let id: string;
  beforeEach(async () => {
    fake = fakeConnections();
    store = new ContractStore(() => Promise.resolve(fake.table));
    await store.open();
    id = await store.put(freeItem("c"));
  });

  const take = (owner: string, nowMs = NOW_MS): Promise<Outcome<Acquired>> =>
    acquire(fake.table, { connectionId: id, owner, nowMs, leaseMs: LEASE_MS, skewMs: SKEW_MS });
  const taken = async (owner: string, nowMs = NOW_MS): Promise<Holder & { expiresAtMs: number }> => {
    const outcome = await take(owner, nowMs);
    assert.equal(outcome.kind, "held");
    return { connectionId: id, owner, epoch: outcome.value.epoch, expiresAtMs: outcome.value.expiresAtMs };
  };
  /** Sends what `write` sends so that it is applied {@link LATE_MS} from now. */
  const late = async (write: () => Promise<Outcome<unknown>>): Promise<void> => {
    fake.dynamoDb.faults = () => ({ kind: "delayed-apply", applyAfterMs: LATE_MS });
    const outcome = await write();
    fake.dynamoDb.faults = undefined;
    assert.equal(outcome.kind === "unknown" && outcome.reason, "timeout");
  };
  const arrives = () => store.unchanged(id, () => fake.clock.advance(LATE_MS));

  it("a late renewal neither shortens nor rewinds what a newer one of the same life wrote", async () => {
    const mine = await taken(ME);
    await late(() =>
      renew(fake.table, { ...mine, expiresAtMs: mine.expiresAtMs + 1, checkpoint: { lastSeq: 50n, lastCursor: "50" } }),
    );
    const newer = await renew(fake.table, {
      ...mine,
      expiresAtMs: mine.expiresAtMs + 2,
      checkpoint: { lastSeq: 60n, lastCursor: "60" },
    });
    assert.equal(newer.kind, "held");
    await arrives();
  });

  it("a late renewal does not revive a lease that was given back, parked, or freed for a dead task", async () => {
    for (const free of [
      (mine: Holder) => release(fake.table, mine),
      (mine: Holder) => park(fake.table, { ...mine, untilMs: NOW_MS + 10, error: "x" }),
      (mine: Holder) =>
        releaseOf({ table: fake.table, clock: fake.clock }, { deadTask: mine.owner, perSecond: 1000, attempts: 1 }),
    ]) {
      await store.put(freeItem(id));
      const mine = await taken(ME);
      await late(() => renew(fake.table, { ...mine, expiresAtMs: mine.expiresAtMs + 5000 }));
      await free(mine);
      await arrives();
    }
  });

  for (const next of [OTHER, ME]) {
    const who = next === ME ? "its own next life" : "the next owner";
    it(`late renewals, releases and parks do nothing to ${who}`, async () => {
      const mine = await taken(ME);
      await late(() => renew(fake.table, { ...mine, expiresAtMs: NOW_MS + 100 * LEASE_MS }));
      await late(() => release(fake.table, { ...mine, checkpoint: { lastSeq: 1n } }));
      await late(() => park(fake.table, { ...mine, untilMs: NOW_MS + 100 * LEASE_MS, error: "x" }));
      await taken(next, mine.expiresAtMs + SKEW_MS + 1);
      await arrives();
    });
  }

  it("a late acquire does nothing to whoever holds by then", async () => {
    await late(() => take(ME));
    await taken(OTHER);
    await arrives();
  });

  it("a late acquire into a free item is an own older life: under a new epoch, taken over by a renewal", async () => {
    await late(() => take(ME));
    const other = await taken(OTHER);
    await release(fake.table, other);
    await fake.clock.advance(LATE_MS);

    const item = await store.get(id);
    assert.equal(item?.["lease_owner"]?.S, ME);
    const epoch = BigInt(item["lease_epoch"]!.N!);
    assert.equal(epoch, other.epoch + 1n, "the former owner is fenced off as by any acquire");
    assert.equal((await renew(fake.table, { ...other, expiresAtMs: NOW_MS + 2 * LEASE_MS })).kind, "lost");

    const again = await take(ME, NOW_MS + LATE_MS);
    assert.equal(again.kind === "lost" && again.reason, "own-older-life");
    const expiresAtMs = NOW_MS + LATE_MS + LEASE_MS;
    const renewed = await renew(fake.table, { connectionId: id, owner: ME, epoch, expiresAtMs });
    assert.equal(renewed.kind, "held");
  });

  it("a late acquire that nobody knows of keeps the connection dark no longer than one lease", async () => {
    await late(() => take(ME));
    await fake.clock.advance(LATE_MS);
    assert.equal((await store.get(id))?.["lease_owner"]?.S, ME);
    assert.equal((await take(OTHER, NOW_MS + LEASE_MS + SKEW_MS)).kind, "unknown");
    assert.equal((await take(OTHER, NOW_MS + LEASE_MS + SKEW_MS + 1)).kind, "held");
  });
});
