import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Heart, HEART_SETTINGS, Told } from "../support/heart.ts";

const { leaseMs, heartbeatMs } = HEART_SETTINGS;
const release = (lastSeq?: bigint) => ({
  kind: "release" as const,
  checkpoint: lastSeq === undefined ? undefined : { lastSeq },
});

describe("ending a holding", () => {
  it("frees the lease in one write with the final checkpoint", async () => {
    const heart = new Heart();
    const holding = await heart.hold("c");
    assert.equal(await heart.beats.end(holding, release(9n)), "held");
    assert.deepEqual([heart.lease("c").owner, heart.lease("c").expiresAtMs], [undefined, 0]);
    assert.equal(heart.item("c")?.["last_seq"]?.N, "9");
    assert.equal(heart.writes.filter(({ kind }) => kind !== "acquire").length, 1);
    assert.deepEqual(heart.journal.events("c"), ["released"]);
    assert.equal(heart.beats.size, 0);
    await heart.clock.advance(60_000);
    assert.equal(heart.sent("renew", "c").length, 0, "what is released is not renewed");
  });

  it("parks with the reason, for the time that was asked for, and counts the failure", async () => {
    const heart = new Heart();
    const holding = await heart.hold("c");
    const ended = heart.beats.end(holding, {
      kind: "park",
      checkpoint: { lastSeq: 4n },
      parkMs: 900_000.5,
      error: "closed with 4004",
    });
    assert.equal(await ended, "held");
    const item = heart.item("c");
    assert.equal(heart.lease("c").owner, undefined);
    assert.equal(heart.lease("c").expiresAtMs, heart.anchored.nowMs() + 900_001);
    assert.deepEqual(
      [item?.["last_error"], item?.["failure_count"], item?.["last_seq"]],
      [{ S: "closed with 4004" }, { N: "1" }, { N: "4" }],
    );
    assert.deepEqual(heart.journal.events("c"), ["parked"]);
  });

  it("stops the holding from acting at once, before the store was asked", async () => {
    const heart = new Heart();
    const holding = await heart.hold("c");
    heart.fault = () => ({ kind: "delay", ms: 1000 });
    const ended = heart.beats.end(holding, release());
    assert.equal(holding.mayAct(), false);
    assert.deepEqual(heart.journal.events("c"), ["released"]);
    await heart.clock.advance(1000);
    assert.equal(await ended, "held");
  });

  it("waits for a renewal that is on its way: one operation per connection at a time", async () => {
    const heart = new Heart();
    const told = new Told();
    const holding = await heart.hold("c", told);
    heart.fault = ({ kind }) => (kind === "renew" ? { kind: "delay", ms: 2000 } : undefined);
    await heart.clock.advanceUntil(() => heart.sent("renew", "c").length === 1, heartbeatMs);
    await heart.clock.advance(500);
    let result: string | undefined;
    void heart.beats.end(holding, release(5n)).then((kind) => (result = kind));
    assert.equal(holding.mayAct(), false);
    await heart.clock.advance(1499);
    assert.equal(heart.sent("free", "c").length, 0);
    await heart.clock.advance(1);
    assert.equal(result, "held");
    assert.equal(heart.lease("c").owner, undefined);
    assert.equal(holding.mayAct(), false, "the renewal that succeeded meanwhile revives nothing");
    assert.deepEqual(told.renewed, []);
  });

  it("does not let a renewal that is applied later revive the released lease", async () => {
    const heart = new Heart();
    const holding = await heart.hold("c");
    heart.fault = ({ kind }) => (kind === "renew" ? { kind: "delayed-apply", applyAfterMs: 4000 } : undefined);
    await heart.clock.advanceUntil(() => heart.sent("renew", "c").length === 1, heartbeatMs);
    const ended = heart.beats.end(holding, release());
    await heart.clock.advance(100);
    assert.equal(await ended, "held");
    await heart.clock.advance(10_000);
    assert.deepEqual([heart.lease("c").owner, heart.lease("c").expiresAtMs], [undefined, 0]);
  });

  it("takes its own release for done when only the answer got lost", async () => {
    const heart = new Heart();
    const holding = await heart.hold("c");
    let lost = 0;
    heart.fault = ({ kind }) => (kind === "free" && lost++ === 0 ? { kind: "apply-then-error" } : undefined);
    const ended = heart.beats.end(holding, release(3n));
    await heart.clock.advance(2000);
    assert.equal(await ended, "held");
    assert.equal(heart.item("c")?.["last_seq"]?.N, "3");
  });

  it("is content when its release was applied unseen and another has taken the connection since", async () => {
    const heart = new Heart();
    const holding = await heart.hold("c");
    heart.fault = ({ kind }) => (kind === "free" ? { kind: "apply-then-error" } : undefined);
    const ended = heart.beats.end(holding, release());
    await heart.clock.settle();
    heart.fault = undefined;
    const expiresAtMs = heart.anchored.nowMs() + leaseMs;
    await heart.change("c", {
      lease_owner: { S: "other" },
      lease_epoch: { N: String(holding.epoch + 1n) },
      lease_expires_at_ms: { N: String(expiresAtMs) },
    });
    await heart.clock.advance(2000);
    assert.equal(await ended, "lost");
    assert.deepEqual([heart.lease("c").owner, heart.lease("c").expiresAtMs], ["other", expiresAtMs]);
  });

  it("counts a park once, however often its answer gets lost", async () => {
    const heart = new Heart();
    const holding = await heart.hold("c");
    let lost = 0;
    heart.fault = ({ kind }) => (kind === "free" && lost++ < 2 ? { kind: "apply-then-error" } : undefined);
    const ended = heart.beats.end(holding, { kind: "park", checkpoint: undefined, parkMs: 60_000, error: "no" });
    await heart.clock.advance(5000);
    await ended;
    assert.equal(heart.item("c")?.["failure_count"]?.N, "1");
    assert.equal(heart.lease("c").owner, undefined);
  });

  it("tries on for as long as the store is away", async () => {
    const heart = new Heart();
    const holding = await heart.hold("c");
    heart.fault = () => ({ kind: "throttle" });
    const ended = heart.beats.end(holding, release());
    await heart.clock.advance(600_000);
    assert.equal(heart.beats.size, 1);
    heart.fault = undefined;
    await heart.clock.advance(1000);
    assert.equal(await ended, "held");
  });

  it("claims nothing any more once the deadline has passed while it was tried", async () => {
    const heart = new Heart();
    const holding = await heart.hold("c");
    heart.fault = () => ({ kind: "throttle" });
    const ended = heart.beats.end(holding, release(9n));
    await heart.clock.advance(leaseMs);
    heart.fault = undefined;
    await heart.clock.advance(1000);
    assert.equal(await ended, "held");
    const tries = heart.sent("free", "c").map(({ lastSeq }) => lastSeq);
    assert.equal(tries[0], "9");
    assert.equal(tries.at(-1), undefined);
    assert.ok(!Object.hasOwn(heart.item("c") ?? {}, "last_seq"));
  });

  it("may be asked for again, before and after it is settled", async () => {
    const heart = new Heart();
    const holding = await heart.hold("c");
    heart.fault = () => ({ kind: "delay", ms: 100 });
    const first = heart.beats.end(holding, release(1n));
    const second = heart.beats.end(holding, { kind: "park", checkpoint: undefined, parkMs: 1000, error: "late" });
    await heart.clock.advance(200);
    assert.deepEqual([await first, await second], ["held", "held"]);
    assert.equal(heart.item("c")?.["last_error"], undefined, "the first word counts");
    assert.equal(await heart.beats.end(holding, release()), "lost");
    assert.equal(heart.sent("free", "c").length, 1);
  });

  it("frees hundreds side by side, while the others are still renewed", async () => {
    const heart = new Heart();
    const holdings = [];
    for (let n = 0; n < 300; n++) holdings.push(await heart.hold(`c-${n}`));
    heart.fault = () => ({ kind: "delay", ms: 20 });
    const startMs = heart.clock.monotonicMs();
    const ends = holdings.map((holding) => heart.beats.end(holding, release()));
    await heart.clock.advanceUntil(() => heart.beats.size === 0, 5000);
    await Promise.all(ends);
    assert.ok(heart.clock.monotonicMs() - startMs < 300, "five rounds of 64, not 300 of one");
  });
});

describe("a deadline that a side effect notices before any timer", () => {
  it("fences at once and once, and frees by itself", async () => {
    const heart = new Heart();
    const told = new Told();
    const holding = await heart.hold("c", told);
    heart.clock.stepWall(leaseMs);
    assert.equal(holding.mayAct(), false);
    heart.beats.fence(holding);
    heart.beats.fence(holding);
    assert.deepEqual([holding.state, told.fenced], ["fenced", 1]);
    await heart.clock.advance(100);
    assert.equal(heart.lease("c").owner, undefined);
    assert.deepEqual(heart.journal.events("c"), ["fenced"]);
  });

  it("does not stop a holding that has already ended, nor one it does not know", async () => {
    const heart = new Heart();
    const told = new Told();
    const holding = await heart.hold("c", told);
    await heart.beats.end(holding, release());
    heart.beats.fence(holding);
    assert.deepEqual([holding.state, told.fenced], ["ended", 0]);
  });

  it("is noticed by the loop when only the wall clock has moved on, as after a suspension", async () => {
    const heart = new Heart();
    const told = new Told();
    await heart.hold("c", told);
    await heart.clock.advance(1000);
    heart.clock.stepWall(leaseMs);
    await heart.clock.advance(1000);
    assert.equal(told.fenced, 1);
  });
});
