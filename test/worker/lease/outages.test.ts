import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Fault } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { Heart, HEART_SETTINGS, Told } from "../support/heart.ts";

const { leaseMs, marginMs } = HEART_SETTINGS;
const FAULTS: Fault["kind"][] = ["throttle", "server-error", "credentials", "no-answer", "apply-then-error"];
const fault = (kind: Fault["kind"]): Fault => ({ kind }) as Fault;

describe("a store that does not answer as it should", () => {
  for (const kind of FAULTS) {
    it(`costs no lease within the local deadline: ${kind}`, async () => {
      const heart = new Heart();
      const tolds = Array.from({ length: 20 }, () => new Told());
      for (const [n, told] of tolds.entries()) await heart.hold(`c-${n}`, told);
      await heart.clock.advance(12_000);
      heart.fault = () => fault(kind);
      await heart.clock.advance(9000);
      heart.fault = undefined;
      await heart.clock.advance(60_000);
      for (const told of tolds) assert.deepEqual([told.lost.length, told.fenced], [0, 0]);
      for (let n = 0; n < 20; n++) assert.equal(heart.lease(`c-${n}`).owner, "me");
    });
  }

  for (const kind of FAULTS.filter((one) => one !== "apply-then-error")) {
    it(`fences at the local deadline, not before and not for another reason, and frees in the end: ${kind}`, async () => {
      const heart = new Heart();
      const told = new Told();
      const holding = await heart.hold("c", told);
      await heart.clock.advanceUntil(() => told.renewed.length === 2, 20_000);
      told.now = { lastSeq: 77n };
      const lastRenewalMs = heart.sent("renew", "c").at(-1)!.atMs;
      const deadlineMs = lastRenewalMs + leaseMs - marginMs;

      heart.fault = () => fault(kind);
      await heart.clock.advance(deadlineMs - 1 - heart.clock.monotonicMs());
      assert.equal(holding.mayAct(), true);
      assert.equal(told.fenced, 0);
      await heart.clock.advance(1);
      assert.equal(holding.mayAct(), false);
      // The loop takes wake-ups together that are closer than 5 ms.
      await heart.clock.advance(5);
      assert.equal(told.fenced, 1);

      await heart.clock.advance(60_000 - (heart.clock.monotonicMs() - lastRenewalMs));
      assert.deepEqual(told.lost, [], "an outage is never a loss");
      assert.equal(told.fenced, 1);
      assert.equal(heart.lease("c").owner, "me");
      assert.equal(heart.beats.size, 1, "it goes on trying");

      heart.fault = undefined;
      await heart.clock.advance(5000);
      assert.deepEqual([heart.lease("c").owner, heart.lease("c").expiresAtMs], [undefined, 0]);
      assert.equal(heart.beats.size, 0);
      assert.equal(heart.item("c")?.["last_seq"], undefined, "past the deadline nothing is claimed");
      assert.deepEqual(heart.journal.events("c"), ["renewed", "renewed", "fenced"]);
    });
  }

  it("does not revive a fenced holding by an answer that comes late, and frees what that answer renewed", async () => {
    const heart = new Heart({ attempts: 10, attemptTimeoutMs: 4000 });
    const told = new Told();
    const holding = await heart.hold("c", told);
    heart.fault = ({ kind }) => (kind === "renew" ? { kind: "delay", ms: 30_000 } : undefined);
    await heart.clock.advanceUntil(() => told.fenced === 1, leaseMs);
    assert.equal(holding.state, "fenced");
    await heart.clock.advance(20_000);
    assert.equal(holding.mayAct(), false);
    assert.deepEqual(told.renewed, []);
    assert.equal(heart.sent("renew", "c").length, 1);
    assert.equal(heart.lease("c").owner, undefined);
    assert.equal(heart.beats.size, 0);
  });

  it("frees a fenced lease that another took meanwhile for nobody: it is theirs", async () => {
    const heart = new Heart();
    const told = new Told();
    const holding = await heart.hold("c", told);
    heart.fault = () => fault("throttle");
    await heart.clock.advanceUntil(() => told.fenced === 1, leaseMs);
    await heart.change("c", {
      lease_owner: { S: "other" },
      lease_epoch: { N: String(holding.epoch + 1n) },
      lease_expires_at_ms: { N: String(heart.anchored.nowMs() + leaseMs) },
    });
    heart.fault = undefined;
    await heart.clock.advance(5000);
    assert.equal(heart.lease("c").owner, "other");
    assert.equal(heart.lease("c").epoch, holding.epoch + 1n);
    assert.equal(heart.beats.size, 0);
    assert.deepEqual(told.lost, [], "it had stopped by itself");
  });

  it("renews all leases again after an outage, the most urgent first", async () => {
    const heart = new Heart({ maxConcurrentLeaseOps: 4 });
    const tolds = Array.from({ length: 60 }, () => new Told());
    for (const [n, told] of tolds.entries()) {
      await heart.hold(`c-${n}`, told);
      await heart.clock.advance(20);
    }
    heart.fault = () => fault("no-answer");
    await heart.clock.advance(8000);
    heart.fault = () => ({ kind: "delay", ms: 100 });
    await heart.clock.advance(30_000);
    for (const told of tolds) assert.equal(told.fenced + told.lost.length, 0);
  });
});

describe("a store that answers for some items only", () => {
  it("costs the others nothing once the deadlines of the first have passed: what can be saved goes first", async () => {
    const heart = new Heart({ maxConcurrentLeaseOps: 2 });
    heart.fault = ({ connectionId, kind }) =>
      kind !== "acquire" && connectionId.startsWith("dark") ? { kind: "no-answer" } : undefined;
    const dark = Array.from({ length: 20 }, () => new Told());
    for (const [n, told] of dark.entries()) await heart.hold(`dark-${n}`, told);
    await heart.clock.advanceUntil(() => dark.every((told) => told.fenced === 1), leaseMs);
    const light = Array.from({ length: 10 }, () => new Told());
    for (const [n, told] of light.entries()) await heart.hold(`light-${n}`, told);
    await heart.clock.advance(120_000);
    for (const told of light) assert.deepEqual([told.fenced, told.lost.length], [0, 0]);
    heart.fault = undefined;
    await heart.clock.advance(10_000);
    assert.equal(heart.beats.size, light.length, "the first are freed in the end");
  });
});

describe("a lease that is really lost", () => {
  it("is told of once, when another epoch wrote", async () => {
    const heart = new Heart();
    const told = new Told();
    const holding = await heart.hold("c", told);
    await heart.change("c", { lease_epoch: { N: String(holding.epoch + 1n) }, lease_owner: { S: "other" } });
    await heart.clock.advance(60_000);
    assert.deepEqual(
      told.lost.map((lost) => lost.reason),
      ["owned"],
    );
    assert.equal(holding.state, "ended");
    assert.equal(heart.sent("renew", "c").length, 1);
    assert.equal(heart.lease("c").owner, "other");
    assert.deepEqual(heart.journal.events("c"), ["lost"]);
  });

  it("is lost too when the same name acquired it again under another epoch", async () => {
    const heart = new Heart();
    const told = new Told();
    const holding = await heart.hold("c", told);
    await heart.change("c", { lease_epoch: { N: String(holding.epoch + 1n) } });
    await heart.clock.advance(6000);
    assert.equal(told.lost.length, 1);
    assert.equal(holding.mayAct(), false);
  });

  it("is told of when the item is gone, and not brought back", async () => {
    const heart = new Heart();
    const told = new Told();
    await heart.hold("c", told);
    await heart.remove("c");
    await heart.clock.advance(60_000);
    assert.deepEqual(
      told.lost.map((lost) => lost.reason),
      ["gone"],
    );
    assert.equal(heart.item("c"), undefined);
  });

  it("is told of when somebody who took us for dead freed it", async () => {
    const heart = new Heart();
    const told = new Told();
    const holding = await heart.hold("c", told);
    const { connection_id, desired_state, ws_url, lease_epoch } = heart.item("c")!;
    await heart.put({ connection_id, desired_state, ws_url, lease_epoch, lease_expires_at_ms: { N: "0" } } as never);
    await heart.clock.advance(6000);
    assert.deepEqual(
      told.lost.map((lost) => lost.reason),
      ["parked"],
    );
    assert.equal(holding.mayAct(), false);
    assert.equal(heart.lease("c").owner, undefined);
  });
});
