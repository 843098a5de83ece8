import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { RawItem } from "../../../shared/connection/item.ts";
import type { Call, Fault } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import { Intake, INTAKE_SETTINGS, type IntakeOptions } from "../support/intake.ts";

const { acquireBudgetMs, fatalParkMs, leaseMs, marginMs } = INTAKE_SETTINGS;
const make = (options?: IntakeOptions): Intake<VirtualClock> => new Intake(new VirtualClock(), options);

/** The update's text tells an acquire from a renewal and a release. */
const isAcquire = ({ input }: Call): boolean => JSON.stringify(input).includes("if_not_exists(lease_epoch");
const isRenewal = ({ operation, input }: Call): boolean =>
  operation === "UpdateItem" && JSON.stringify(input).includes("lease_expires_at_ms <= :expires");

/** Notes the requests from now on; `fault` decides what becomes of each. */
function watch(intake: Intake<VirtualClock>, fault: (call: Call) => Fault | undefined = () => undefined): Call[] {
  const calls: Call[] = [];
  intake.db.faults = (call) => {
    calls.push(call);
    return fault(call);
  };
  return calls;
}

describe("an acquire", () => {
  it("makes a connection of a free lease, and dials", async () => {
    const intake = make();
    await intake.seed("c");
    assert.equal(await intake.acquirer.tryAcquire("c", intake.clock.wallMs() - 700), "held");
    assert.equal(intake.lease("c").owner, "me");
    assert.equal(intake.lease("c").expiresAtMs, intake.anchored.nowMs() + leaseMs);
    assert.equal(intake.dial.sockets.length, 1);
    assert.deepEqual(intake.journal.events("c"), ["held"]);
    assert.equal(intake.metrics.counted("LeaseAcquired"), 1);
    intake.dial.last.open();
    const delay = intake.metrics.take({}).find(({ name }) => name === "HandoverDelay");
    assert.deepEqual(delay?.values, [700]);
  });

  it("counts the local deadline from before the request", async () => {
    const intake = make();
    await intake.seed("c");
    watch(intake, () => ({ kind: "delay", ms: 2000 }));
    const result = intake.acquirer.tryAcquire("c");
    await intake.clock.advance(2000);
    assert.equal(await result, "held");
    assert.equal(intake.connections.get("c")?.holding.deadline.remainingMs(), leaseMs - marginMs - 2000);
  });

  it("happens once, however often the same connection is hinted at", async () => {
    const intake = make();
    await intake.seed("c");
    const calls = watch(intake, () => ({ kind: "delay", ms: 100 }));
    const results = Array.from({ length: 10 }, () => intake.acquirer.tryAcquire("c"));
    await intake.clock.advance(100);
    assert.deepEqual((await Promise.all(results)).sort(), ["held", ...Array<string>(9).fill("settled")]);
    assert.equal(await intake.acquirer.tryAcquire("c"), "settled", "a healthy lease of our own needs no hint");
    assert.equal(calls.filter(isAcquire).length, 1);
    assert.equal(intake.dial.sockets.length, 1);
  });

  it("lets a hint come again that arrives while an acquire is under way and is then refused", async () => {
    const intake = make();
    await intake.seed("c", {
      lease_owner: { S: "other" },
      lease_expires_at_ms: { N: String(Date.UTC(2026, 0, 1) + 15_000) },
    });
    watch(intake, () => ({ kind: "delay", ms: 100 }));
    const first = intake.acquirer.tryAcquire("c");
    await intake.clock.advance(50);
    // The other released meanwhile: this hint tells of a later state than the one that the first acquire has met.
    const second = intake.acquirer.tryAcquire("c");
    await intake.clock.advance(100);
    assert.equal(await first, "settled");
    assert.equal(await second, "again");
  });

  it("is tried again later while our own holding of it is ending", async () => {
    const intake = make();
    await intake.seed("c");
    await intake.acquirer.tryAcquire("c");
    watch(intake, () => ({ kind: "throttle" }));
    void intake.connections.get("c")?.drain();
    await intake.clock.settle();
    assert.equal(await intake.acquirer.tryAcquire("c"), "again");
    intake.db.faults = undefined;
    await intake.clock.advance(1000);
    assert.equal(await intake.acquirer.tryAcquire("c"), "held");
  });

  const future: RawItem = { lease_expires_at_ms: { N: String(Date.UTC(2026, 0, 1) + 15_000) } };
  for (const [what, item, conflicts] of [
    ["held by another", { ...future, lease_owner: { S: "other" }, lease_epoch: { N: "5" } }, 1],
    ["parked", future, 0],
    ["stopped", { desired_state: { S: "STOPPED" } }, 0],
    [
      "ours by name, but stopped",
      { ...future, lease_owner: { S: "me" }, lease_epoch: { N: "5" }, desired_state: { S: "STOPPED" } },
      0,
    ],
  ] as const) {
    it(`settles the hint for a connection that is ${what}, and changes nothing`, async () => {
      const intake = make();
      await intake.seed("c", item);
      const before = intake.item("c");
      assert.equal(await intake.acquirer.tryAcquire("c"), "settled");
      assert.deepEqual(intake.item("c"), before);
      assert.equal(intake.connections.size + intake.connections.acquiring, 0);
      assert.equal(intake.metrics.counted("LeaseAcquireConflicts"), conflicts);
    });
  }

  it("settles the hint for a connection that is gone, and creates nothing", async () => {
    const intake = make();
    assert.equal(await intake.acquirer.tryAcquire("gone"), "settled");
    assert.equal(intake.item("gone"), undefined);
  });

  it("leaves the hint when the lease in the way ends in a moment", async () => {
    const intake = make();
    const expires = { lease_expires_at_ms: { N: String(intake.anchored.nowMs() + 500) } };
    await intake.seed("c", { ...expires, lease_owner: { S: "other" }, lease_epoch: { N: "5" } });
    assert.equal(await intake.acquirer.tryAcquire("c"), "again");
    await intake.clock.advance(1600);
    assert.equal(await intake.acquirer.tryAcquire("c"), "held");
    assert.equal(intake.lease("c").epoch, 6n);
  });

  for (const kind of ["throttle", "server-error", "credentials", "no-answer"] as const) {
    it(`leaves the hint when nobody can say: ${kind}`, async () => {
      const intake = make();
      await intake.seed("c");
      watch(intake, () => ({ kind }));
      const result = intake.acquirer.tryAcquire("c");
      await intake.clock.advance(acquireBudgetMs);
      assert.equal(await result, "again");
      assert.equal(intake.connections.acquiring, 0);
      intake.db.faults = undefined;
      assert.equal(await intake.acquirer.tryAcquire("c"), "held");
    });
  }

  it("leaves the hint when the cap was reached in the meantime, without asking the store", async () => {
    const intake = make({ maxConnections: 1 });
    await intake.seed(["a", "b"]);
    await intake.acquirer.tryAcquire("a");
    const calls = watch(intake);
    assert.equal(await intake.acquirer.tryAcquire("b"), "again");
    assert.equal(await intake.acquirer.tryAcquire("a"), "settled", "what is held needs no slot");
    assert.equal(calls.length, 0);
    assert.equal(intake.connections.size, 1);
  });

  it("parks an item whose settings nobody can act on, with the fields and the rules", async () => {
    const intake = make();
    await intake.seed("c", { ws_url: { S: "ftp://feed.test/" }, last_seq: { S: "x" } });
    assert.equal(await intake.acquirer.tryAcquire("c"), "settled");
    assert.deepEqual(
      [intake.lease("c").owner, intake.lease("c").expiresAtMs],
      [undefined, intake.anchored.nowMs() + fatalParkMs],
    );
    assert.match(intake.item("c")?.["last_error"]?.S ?? "", /ws_url must begin with .*; last_seq must be/);
    assert.equal(intake.connections.size, 0);
    assert.equal(intake.heartbeater.size, 0);
    assert.equal(intake.metrics.counted("MalformedItems"), 1);
    assert.deepEqual(intake.journal.events("c"), ["held", "parked"]);
  });

  it("settles the hint for an item whose lease is no lease, and leaves it to the audit", async () => {
    const intake = make();
    await intake.seed("epoch", { lease_epoch: { S: "five" } });
    assert.equal(await intake.acquirer.tryAcquire("epoch"), "settled");
    assert.equal(intake.lease("epoch").owner, undefined);
    assert.equal(intake.metrics.counted("MalformedItems"), 1);
  });

  it("frees its slot whatever happens", async () => {
    const intake = make();
    await intake.seed("c");
    intake.mistake = new TypeError("a mistake");
    await assert.rejects(intake.acquirer.tryAcquire("c"), intake.mistake);
    assert.equal(intake.connections.acquiring, 0);
  });
});

describe("an acquire that was applied though its answer never came", () => {
  it("is taken over by a renewal when the hint comes again: one epoch, one connection", async () => {
    const intake = make();
    await intake.seed("c");
    watch(intake, (call) => (isAcquire(call) ? { kind: "apply-then-timeout" } : undefined));
    const first = intake.acquirer.tryAcquire("c");
    await intake.clock.advance(acquireBudgetMs);
    assert.equal(await first, "again");
    const { epoch, expiresAtMs } = intake.lease("c");
    assert.equal(intake.lease("c").owner, "me");
    assert.equal(intake.dial.sockets.length, 0, "nobody acts on what nobody confirmed");

    await intake.clock.advance(1000);
    const calls = watch(intake);
    assert.equal(await intake.acquirer.tryAcquire("c"), "held");
    assert.deepEqual(
      calls.map((call) => isAcquire(call) || isRenewal(call)),
      [true, true],
    );
    assert.equal(intake.lease("c").epoch, epoch);
    assert.ok((intake.lease("c").expiresAtMs ?? 0) > (expiresAtMs ?? Infinity));
    assert.equal(intake.connections.get("c")?.holding.epoch, epoch);
    assert.equal(intake.connections.get("c")?.holding.deadline.remainingMs(), leaseMs - marginMs);
    assert.equal(intake.dial.sockets.length, 1);
  });

  it("is told of at the end, so that the supervisor frees it, until it is resolved or expired", async () => {
    const intake = make();
    await intake.seed("c");
    assert.equal(intake.acquirer.mayHaveLeftLeases(), false);
    const giveUp = async (): Promise<void> => {
      watch(intake, (call) => (isAcquire(call) ? { kind: "apply-then-timeout" } : undefined));
      const attempt = intake.acquirer.tryAcquire("c");
      await intake.clock.advance(acquireBudgetMs);
      assert.equal(await attempt, "again");
    };
    await giveUp();
    assert.equal(intake.acquirer.mayHaveLeftLeases(), true);
    await intake.clock.advance(leaseMs);
    assert.equal(intake.acquirer.mayHaveLeftLeases(), true);
    await intake.clock.advance(1);
    assert.equal(intake.acquirer.mayHaveLeftLeases(), false);

    await intake.clock.advance(2000);
    await giveUp();
    watch(intake);
    assert.equal(await intake.acquirer.tryAcquire("c"), "held");
    assert.equal(intake.acquirer.mayHaveLeftLeases(), false);
  });

  it("is not taken over when another wrote in between", async () => {
    const intake = make();
    const theirs = { lease_expires_at_ms: { N: String(intake.anchored.nowMs() + 15_000) } };
    await intake.seed("c", { ...theirs, lease_owner: { S: "me" }, lease_epoch: { N: "8" } });
    watch(intake, (call) => (isRenewal(call) ? { kind: "delay", ms: 100 } : undefined));
    const result = intake.acquirer.tryAcquire("c");
    await intake.clock.settle();
    await intake.seed("c", { ...theirs, lease_owner: { S: "other" }, lease_epoch: { N: "9" } });
    await intake.clock.advance(100);
    assert.equal(await result, "settled");
    assert.equal(intake.lease("c").owner, "other");
    assert.equal(intake.dial.sockets.length, 0);
  });

  it("leaves the hint when nobody can say whether the takeover succeeded", async () => {
    const intake = make();
    const expires = { lease_expires_at_ms: { N: String(intake.anchored.nowMs() + 15_000) } };
    await intake.seed("c", { ...expires, lease_owner: { S: "me" }, lease_epoch: { N: "8" } });
    watch(intake, (call) => (isRenewal(call) ? { kind: "throttle" } : undefined));
    assert.equal(await intake.acquirer.tryAcquire("c"), "again");
    assert.equal(intake.connections.size, 0);
  });
});

describe("an acquire that should not have been", () => {
  it("is undone when the drain began while it was on its way, before anybody acts on it", async () => {
    const intake = make();
    await intake.seed("c");
    watch(intake, (call) => (isAcquire(call) ? { kind: "delay", ms: 1000, applyAt: "start" } : undefined));
    const result = intake.acquirer.tryAcquire("c");
    await intake.clock.advance(500);
    let stopped = false;
    void intake.acquirer.stop().then(() => (stopped = true));
    await intake.clock.advance(499);
    assert.equal(stopped, false, "not before it is known to be undone");
    await intake.clock.advance(1);
    assert.equal(await result, "settled");
    assert.equal(stopped, true);
    assert.deepEqual([intake.lease("c").owner, intake.lease("c").expiresAtMs], [undefined, 0]);
    assert.equal(intake.dial.sockets.length, 0);
    assert.deepEqual(intake.journal.events(), []);
    assert.equal(intake.heartbeater.size, 0);
  });

  it("is given back when its answer came too late to be worth anything", async () => {
    const intake = make();
    await intake.seed("c");
    watch(intake, (call) => (isAcquire(call) ? { kind: "delay", ms: 1000, applyAt: "start" } : undefined));
    const result = intake.acquirer.tryAcquire("c");
    await intake.clock.settle();
    // The machine was suspended while the answer was on its way.
    intake.clock.stepWall(leaseMs);
    await intake.clock.advance(1000);
    assert.equal(await result, "settled");
    assert.deepEqual([intake.lease("c").owner, intake.lease("c").expiresAtMs], [undefined, 0]);
    assert.equal(intake.dial.sockets.length, 0);
  });

  it("is not begun after the stop, and begun again after a resume", async () => {
    const intake = make();
    await intake.seed("c");
    await intake.acquirer.stop();
    const calls = watch(intake);
    assert.equal(await intake.acquirer.tryAcquire("c"), "again");
    assert.equal(calls.length, 0);
    intake.acquirer.resume();
    assert.equal(await intake.acquirer.tryAcquire("c"), "held");
  });
});
