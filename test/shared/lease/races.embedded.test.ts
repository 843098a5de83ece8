import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  acquire,
  deleteConnection,
  mend,
  park,
  release,
  releaseOf,
  renew,
  start,
  stop,
  type Acquired,
  type Outcome,
} from "../../../shared/lease/index.ts";
import { shuffled } from "../../../shared/random.ts";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../../support/embedded-dynamodb.ts";
import { LeapingClock } from "../../support/leaping-clock.ts";
import {
  EPOCH,
  freeItem,
  freshItem,
  heldItem,
  LEASE_MS,
  ME,
  NOW_MS,
  OTHER,
  SKEW_MS,
  without,
} from "./contract/items.ts";
import { ContractStore } from "./contract/store.ts";

const ROUNDS = 40;
const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

describe("races on the embedded server", { timeout: 300_000 }, () => {
  let dynamoDb: EmbeddedDynamoDb | undefined;
  const store = new ContractStore(async () => {
    dynamoDb = await startEmbeddedDynamoDb();
    return { client: dynamoDb.client, tableName: await dynamoDb.createTable("ConnectionsTable") };
  });
  before(() => store.open());
  after(() => dynamoDb?.stop());

  const take = (connectionId: string, owner: string, nowMs = NOW_MS): Promise<Outcome<Acquired>> =>
    acquire(store.table, { connectionId, owner, nowMs, leaseMs: LEASE_MS, skewMs: SKEW_MS });
  const mine = (connectionId: string) => ({ connectionId, owner: ME, epoch: EPOCH });

  it("of 200 racers for one connection exactly one wins, round after round", async () => {
    const id = await store.put(freshItem(store.newId()));
    let lastEpoch = 0n;
    for (const round of range(10)) {
      // Between rounds the lease expires; every racer reads a clock of its own within the skew.
      const roundMs = NOW_MS + round * (LEASE_MS + 10 * SKEW_MS);
      const outcomes = await Promise.all(
        range(200).map((racer) => take(id, `racer-${racer}`, roundMs + (racer % 10) * (SKEW_MS / 10))),
      );
      const winners = outcomes.flatMap((outcome, racer) =>
        outcome.kind === "held" ? [{ racer, ...outcome.value }] : [],
      );
      assert.equal(winners.length, 1);
      const winner = winners[0]!;
      assert.ok(winner.epoch > lastEpoch);
      if (round > 0) assert.equal(winner.epoch, lastEpoch + 1n, "the losers must not have counted");
      lastEpoch = winner.epoch;
      for (const outcome of outcomes) {
        if (outcome.kind !== "held") assert.equal(outcome.kind === "lost" && outcome.reason, "owned");
      }
      const item = await store.get(id);
      assert.equal(item?.["lease_owner"]?.S, `racer-${winner.racer}`);
      assert.equal(item["lease_expires_at_ms"]?.N, String(winner.expiresAtMs));
    }
  });

  it("20 racers for 60 connections share them out without a rest and without an overlap", async () => {
    const ids = await Promise.all(range(60).map(() => store.put(freeItem(store.newId()))));
    const won = await Promise.all(
      range(20).map(async (racer) => {
        const outcomes = await Promise.all(
          shuffled(ids, Math.random).map(async (id) => ({ id, outcome: await take(id, `racer-${racer}`) })),
        );
        return outcomes.filter(({ outcome }) => outcome.kind === "held").map(({ id }) => id);
      }),
    );
    assert.deepEqual(won.flat().sort(), [...ids].sort());
    for (const [racer, held] of won.entries()) {
      for (const id of held) assert.equal((await store.get(id))?.["lease_owner"]?.S, `racer-${racer}`);
    }
  });

  it("a release and a renewal in flight together always end with the lease free", async () => {
    for (const round of range(ROUNDS)) {
      const id = await store.put(heldItem(store.newId()));
      const writes = [
        () => renew(store.table, { ...mine(id), expiresAtMs: NOW_MS + LEASE_MS + 1, checkpoint: { lastSeq: 50n } }),
        () => release(store.table, { ...mine(id), checkpoint: { lastSeq: 51n } }),
      ];
      if (round % 2 === 1) writes.reverse();
      const outcomes = await Promise.all(writes.map((write) => write()));
      if (round % 2 === 1) outcomes.reverse();
      const [renewed, released] = outcomes;
      assert.equal(released?.kind, "held");
      if (renewed?.kind === "lost") assert.equal(renewed.reason, "parked");
      else assert.equal(renewed?.kind, "held");
      const item = await store.get(id);
      assert.deepEqual([item?.["lease_owner"], item?.["lease_expires_at_ms"]?.N], [undefined, "0"]);
      assert.equal(item?.["last_seq"]?.N, "51", "the final checkpoint stands");
    }
  });

  it("a start never touches a lease that is taken at the same time", async () => {
    for (const round of range(ROUNDS)) {
      const parked = { lease_expires_at_ms: { N: String(round % 2 === 0 ? 0 : NOW_MS - 10 * SKEW_MS) } };
      const id = await store.put(freeItem(store.newId(), parked));
      const upstream = { position: { pointer: "/seq", kind: "sequence" as const } };
      const wsUrl = `wss://feed.test/${round}`;
      const [started, taken] = await Promise.all([
        start(store.table, { connectionId: id, wsUrl, upstream }),
        take(id, ME),
      ]);
      assert.deepEqual([started.kind, taken.kind], ["held", "held"]);
      const item = await store.get(id);
      assert.deepEqual(
        [item?.["lease_owner"]?.S, item?.["lease_expires_at_ms"]?.N, item?.["ws_url"]?.S, item?.["desired_state"]?.S],
        [ME, String(NOW_MS + LEASE_MS), wsUrl, "STARTED"],
      );
    }
  });

  it("a start beside a release or a park leaves the connection free and takeable, or parked by the later write", async () => {
    for (const round of range(ROUNDS)) {
      const id = await store.put(heldItem(store.newId(), {}, { desired_state: { S: "STOPPED" } }));
      const untilMs = NOW_MS + 600_000;
      const upstream = { position: { pointer: "/seq", kind: "sequence" as const } };
      const [started, freed] = await Promise.all([
        start(store.table, { connectionId: id, wsUrl: "wss://feed.test/", upstream }),
        round % 2 === 0 ? release(store.table, mine(id)) : park(store.table, { ...mine(id), untilMs, error: "x" }),
      ]);
      assert.equal(started.kind, "held");
      assert.equal(freed.kind, "held");
      const item = await store.get(id);
      assert.equal(item?.["lease_owner"], undefined);
      assert.equal(item?.["desired_state"]?.S, "STARTED");
      const expiry = Number(item["lease_expires_at_ms"]?.N);
      assert.ok(expiry === 0 || (round % 2 === 1 && expiry === untilMs));
    }
  });

  it("many starts at once agree with each other and with the holder", async () => {
    const id = store.newId();
    const starts = await Promise.all(
      range(30).map((n) => start(store.table, { connectionId: id, wsUrl: `wss://feed.test/${n}` })),
    );
    assert.ok(starts.every((outcome) => outcome.kind === "held"));
    assert.equal((await take(id, ME)).kind, "held");
  });

  it("a delete beside a start never leaves a started connection deleted", async () => {
    for (const _round of range(ROUNDS)) {
      const id = await store.put(freeItem(store.newId(), { desired_state: { S: "STOPPED" } }));
      const upstream = { position: { pointer: "/seq", kind: "sequence" as const } };
      const [started, deleted] = await Promise.all([
        start(store.table, { connectionId: id, wsUrl: "wss://feed.test/", upstream }),
        deleteConnection(store.table, { connectionId: id, nowMs: NOW_MS, skewMs: 1000 }),
      ]);
      assert.equal(started.kind, "held");
      const item = await store.get(id);
      assert.equal(item?.["desired_state"]?.S, "STARTED");
      assert.equal(item["lease_expires_at_ms"]?.N, "0");
      // Deleted first: a new life without an epoch. Started first: the delete was refused.
      assert.equal(item["lease_epoch"] === undefined, deleted.kind === "held");
    }
  });

  it("a delete beside an acquire ends with a holder or without an item, never with a ghost", async () => {
    for (const _round of range(ROUNDS)) {
      const id = await store.put(freeItem(store.newId()));
      const [taken, deleted] = await Promise.all([
        take(id, ME),
        stop(store.table, id).then(() =>
          deleteConnection(store.table, { connectionId: id, nowMs: NOW_MS, skewMs: 1000 }),
        ),
      ]);
      const item = await store.get(id);
      if (taken.kind === "held") {
        assert.equal(deleted.kind === "lost" && deleted.reason, "owned");
        assert.equal(item?.["lease_owner"]?.S, ME);
      } else {
        assert.equal(deleted.kind, "held");
        assert.equal(item, undefined);
      }
    }
  });

  it("a mend beside a renewal never shortens the lease that the holder was promised", async () => {
    for (const _round of range(ROUNDS)) {
      const seen = without(heldItem(store.newId()), "lease_expires_at_ms");
      const id = await store.put(seen);
      const expiresAtMs = NOW_MS + LEASE_MS + 300;
      const [renewed] = await Promise.all([
        renew(store.table, { ...mine(id), expiresAtMs }),
        mend(store.table, { connectionId: id, seen, nowMs: NOW_MS, leaseMs: LEASE_MS }),
      ]);
      assert.equal(renewed.kind, "held");
      const item = await store.get(id);
      assert.equal(item?.["lease_expires_at_ms"]?.N, String(expiresAtMs));
      assert.equal(item["lease_owner"]?.S, ME);
    }
  });

  it("releaseOf beside renewals of the dead task's last breath and new owners frees each lease once", async () => {
    const ids = await Promise.all(range(60).map(() => store.put(heldItem(store.newId(), { owner: "dying" }))));
    const clock = new LeapingClock(NOW_MS);
    const [counts] = await Promise.all([
      releaseOf({ table: store.table, clock }, { deadTask: "dying", perSecond: 1000, attempts: 3 }),
      ...ids.map((connectionId) =>
        renew(store.table, { connectionId, owner: "dying", epoch: EPOCH, expiresAtMs: NOW_MS + 2 * LEASE_MS }),
      ),
    ]);
    assert.deepEqual(counts, { released: ids.length, skipped: 0, failed: 0 });
    const [again, ...taken] = await Promise.all([
      releaseOf({ table: store.table, clock }, { deadTask: "dying", perSecond: 1000, attempts: 3 }),
      ...ids.map((id) => take(id, OTHER)),
    ]);
    assert.deepEqual(again, { released: 0, skipped: 0, failed: 0 });
    assert.ok(taken.every((outcome) => outcome.kind === "held"));
    for (const id of ids) assert.equal((await store.get(id))?.["lease_owner"]?.S, OTHER);
  });
});
