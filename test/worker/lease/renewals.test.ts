import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Heart, HEART_SETTINGS, Told } from "../support/heart.ts";

const { leaseMs, marginMs, heartbeatMs, heartbeatJitter } = HEART_SETTINGS;
const R_MAX_MS = heartbeatMs * (1 + heartbeatJitter);
const R_MIN_MS = heartbeatMs * (1 - heartbeatJitter);
/** The loop takes wake-ups together that are closer than this. */
const GRAIN_MS = 5;

describe("renewals", () => {
  it("come at the heartbeat's interval, give or take its jitter, for every holding", async () => {
    const heart = new Heart();
    const ids = Array.from({ length: 40 }, (_, n) => `c-${n}`);
    for (const id of ids) await heart.hold(id);
    const heldAtMs = heart.clock.monotonicMs();
    await heart.clock.advance(120_000);
    const gaps: number[] = [];
    for (const id of ids) {
      const times = heart.sent("renew", id).map((write) => write.atMs);
      assert.ok(times[0]! - heldAtMs <= heartbeatMs + GRAIN_MS, "the first comes no later than after one interval");
      gaps.push(...times.slice(1).map((atMs, n) => atMs - times[n]!));
    }
    assert.ok(Math.min(...gaps) >= R_MIN_MS, `${Math.min(...gaps)}`);
    assert.ok(Math.max(...gaps) <= R_MAX_MS + GRAIN_MS, `${Math.max(...gaps)}`);
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
    assert.ok(Math.abs(mean - heartbeatMs) < 100, `${mean}`);
    assert.ok(new Set(gaps).size > gaps.length / 2, "intervals are drawn anew each time");
  });

  it("of leases that were taken in one burst do not come in one", async () => {
    const heart = new Heart();
    for (let n = 0; n < 200; n++) await heart.hold(`c-${n}`);
    await heart.clock.advance(heartbeatMs);
    const firsts = heart.writes.filter((write) => write.kind === "renew").map((write) => write.atMs);
    for (let fromMs = 0; fromMs < heartbeatMs; fromMs += 500) {
      const within = firsts.filter((atMs) => atMs >= fromMs && atMs < fromMs + 500).length;
      assert.ok(within < 60, `${within} renewals within half a second`);
    }
  });

  it("keep the lease and the local deadline ahead, whatever time passes", async () => {
    const heart = new Heart();
    const told = new Told();
    const holding = await heart.hold("c", told);
    for (let step = 0; step < 600; step++) {
      await heart.clock.advance(500);
      assert.ok(holding.deadline.remainingMs() >= leaseMs - marginMs - R_MAX_MS - GRAIN_MS);
      assert.ok((heart.lease("c").expiresAtMs ?? 0) - heart.anchored.nowMs() >= leaseMs - R_MAX_MS - GRAIN_MS);
    }
    assert.equal(told.fenced + told.lost.length, 0);
    assert.equal(heart.beats.minTimeToDeadlineMs(), holding.deadline.remainingMs());
  });

  it("promise no more than the store was asked for: the deadline counts from before the request", async () => {
    const heart = new Heart();
    const holding = await heart.hold("c");
    heart.fault = ({ kind }) => (kind === "renew" ? { kind: "delay", ms: 2500 } : undefined);
    await heart.clock.advanceUntil(() => heart.sent("renew", "c").length === 1, heartbeatMs);
    const startedMs = heart.clock.monotonicMs();
    const before = holding.deadline.monotonicEndMs;
    await heart.clock.advance(2499);
    assert.equal(holding.deadline.monotonicEndMs, before, "nothing is promised before the answer");
    await heart.clock.advance(1);
    assert.equal(holding.deadline.monotonicEndMs, startedMs + leaseMs - marginMs);
  });

  it("bring the item as it is, with the desired state and the settings", async () => {
    const heart = new Heart();
    const told = new Told();
    await heart.hold("c", told);
    await heart.change("c", { desired_state: { S: "STOPPED" }, ws_url: { S: "wss://other.test/" } });
    await heart.clock.advance(heartbeatMs);
    const [item] = told.renewed;
    assert.deepEqual([item?.["desired_state"], item?.["ws_url"]], [{ S: "STOPPED" }, { S: "wss://other.test/" }]);
  });

  it("carry the checkpoint when it has moved, once, and again only when nobody knows whether it arrived", async () => {
    const heart = new Heart();
    const told = new Told();
    await heart.hold("c", told);
    const seqs = (): (string | undefined)[] => heart.sent("renew", "c").map((write) => write.lastSeq);
    const beat = async (): Promise<void> => {
      const count = seqs().length;
      await heart.clock.advanceUntil(() => seqs().length > count, R_MAX_MS + GRAIN_MS);
      await heart.clock.settle();
    };
    await beat();
    told.now = { lastSeq: 2n ** 70n, lastCursor: "at-70" };
    await beat();
    await beat();
    told.now = { lastSeq: 2n ** 70n + 1n };
    heart.fault = () => ({ kind: "throttle" });
    await beat();
    heart.fault = undefined;
    await beat();
    await beat();
    assert.deepEqual(seqs(), [
      undefined,
      "1180591620717411303424",
      undefined,
      "1180591620717411303425",
      "1180591620717411303425",
      undefined,
    ]);
    assert.equal(heart.item("c")?.["last_seq"]?.N, "1180591620717411303425");
    assert.equal(heart.item("c")?.["last_cursor"]?.S, "at-70");
  });

  it("clear the failures of a connection that is healthy again", async () => {
    const heart = new Heart();
    const told = new Told();
    await heart.hold("c", told);
    await heart.change("c", { failure_count: { N: "4" }, last_error: { S: "was refused" } });
    await heart.clock.advance(R_MAX_MS + GRAIN_MS);
    assert.equal(heart.item("c")?.["failure_count"]?.N, "4");
    told.healthy = true;
    await heart.clock.advance(R_MAX_MS + GRAIN_MS);
    assert.equal(heart.item("c")?.["failure_count"]?.N, "0");
    assert.equal(heart.item("c")?.["last_error"], undefined);
  });

  it("go beyond an expiry that somebody put ahead of ours, so that checkpoints are written again", async () => {
    const heart = new Heart();
    const told = new Told();
    const holding = await heart.hold("c", told);
    // An audit mends an absurd value to its own now + L, by a clock that is ahead of ours.
    const aheadMs = heart.anchored.nowMs() + leaseMs + 8000;
    await heart.change("c", { lease_expires_at_ms: { N: String(aheadMs) } });
    told.now = { lastSeq: 5n };
    await heart.clock.advance(2 * (R_MAX_MS + GRAIN_MS));
    assert.equal(holding.mayAct(), true);
    assert.equal(heart.item("c")?.["last_seq"]?.N, "5");
    assert.ok((heart.lease("c").expiresAtMs ?? 0) > aheadMs);
  });

  it("serve the earliest deadline first, when there are more due than may be under way", async () => {
    const heart = new Heart({ maxConcurrentLeaseOps: 2 });
    // The two that are due first are held up until all the others are due too.
    heart.fault = ({ kind }) => (kind === "renew" ? { kind: "delay", ms: 2900 } : undefined);
    const holdings = [];
    for (let n = 0; n < 12; n++) {
      holdings.push(await heart.hold(`c-${n}`));
      await heart.clock.advance(100);
    }
    const renewals = (): string[] => heart.writes.filter(({ kind }) => kind === "renew").map((one) => one.connectionId);
    await heart.clock.advanceUntil(() => heart.clock.monotonicMs() > heartbeatMs + 1300, 10_000);
    const already = renewals().length;
    const waiting = holdings.filter(({ connectionId }) => !renewals().includes(connectionId));
    assert.ok(waiting.length >= 6, `${waiting.length} wait`);
    const expected = waiting
      .sort((a, b) => a.deadline.monotonicEndMs - b.deadline.monotonicEndMs)
      .map((holding) => holding.connectionId);
    heart.fault = ({ kind }) => (kind === "renew" ? { kind: "delay", ms: 10 } : undefined);
    await heart.clock.advanceUntil(() => renewals().length >= already + expected.length, 20_000);
    assert.deepEqual(renewals().slice(already, already + expected.length), expected);
  });

  it("never have more under way than allowed, nor two of one connection", async () => {
    const heart = new Heart({ maxConcurrentLeaseOps: 3 });
    for (let n = 0; n < 20; n++) await heart.hold(`c-${n}`);
    const underWay: string[] = [];
    let most = 0;
    heart.fault = ({ connectionId }) => {
      assert.ok(!underWay.includes(connectionId), `${connectionId} twice at once`);
      underWay.push(connectionId);
      most = Math.max(most, underWay.length);
      heart.clock.after(400, () => underWay.splice(underWay.indexOf(connectionId), 1));
      return { kind: "delay", ms: 400 };
    };
    await heart.clock.advance(60_000);
    assert.equal(most, 3);
    assert.equal(heart.journal.events().includes("fenced"), false);
  });
});
