import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Fault } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { Heart, HEART_SETTINGS, Told } from "../support/heart.ts";
import { seeded } from "../support/seeded.ts";

const { heartbeatMs, heartbeatJitter } = HEART_SETTINGS;
const R_MAX_MS = heartbeatMs * (1 + heartbeatJitter);

describe("the renewal loop", () => {
  for (const method of ["checkpoint", "clearFailures", "onRenewed"] as const) {
    it(`survives a connection whose ${method} throws, for that connection and for the others`, async () => {
      const heart = new Heart();
      const bad = new Told();
      bad[method] = () => {
        throw new Error("a mistake in a callback");
      };
      const good = new Told();
      await heart.hold("bad", bad);
      await heart.hold("good", good);
      await heart.clock.advance(60_000);
      assert.ok(good.renewed.length >= 9, `${good.renewed.length} renewals`);
      if (method === "onRenewed") {
        assert.ok(heart.sent("renew", "bad").length >= 9);
        assert.equal(bad.fenced, 0);
      }
      assert.equal(good.fenced + good.lost.length, 0);
    });
  }

  it("goes on renewing a connection after its callbacks have recovered", async () => {
    const heart = new Heart();
    const told = new Told();
    let failing = true;
    told.checkpoint = () => {
      if (failing) throw new Error("a mistake in a callback");
      return undefined;
    };
    await heart.hold("c", told);
    await heart.clock.advance(10_000);
    assert.deepEqual(told.renewed, []);
    failing = false;
    await heart.clock.advance(10_000);
    assert.notDeepEqual(told.renewed, []);
    assert.equal(told.fenced, 0);
  });

  it("settles a loss and a fence although the connection throws when it is told", async () => {
    const heart = new Heart();
    const told = new Told();
    const fail = (): never => {
      throw new Error("a mistake in a callback");
    };
    told.onLost = fail;
    told.onFenced = fail;
    await heart.hold("lost", told);
    await heart.hold("fenced", told);
    await heart.remove("lost");
    heart.fault = ({ connectionId }) => (connectionId === "fenced" ? { kind: "throttle" } : undefined);
    await heart.clock.advance(30_000);
    heart.fault = undefined;
    await heart.clock.advance(5000);
    assert.equal(heart.beats.size, 0);
    assert.equal(heart.lease("fenced").owner, undefined);
  });

  it("never writes an expiry below one that was written before under the same epoch, whatever faults and steps come", async () => {
    const kinds: (Fault | undefined)[] = [
      undefined,
      undefined,
      { kind: "throttle" },
      { kind: "apply-then-error" },
      { kind: "resent" },
      { kind: "no-answer" },
      { kind: "delayed-apply", applyAfterMs: 700 },
      { kind: "delayed-apply", applyAfterMs: 9000 },
      { kind: "delay", ms: 2900 },
      { kind: "delay", ms: 1200, applyAt: "start" },
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat({ max: kinds.length - 1 }), { minLength: 1, maxLength: 30 }),
        fc.array(fc.integer({ min: -15_000, max: 15_000 }), { maxLength: 8 }),
        fc.nat(),
        async (faults, steps, seed) => {
          const heart = new Heart({}, seed);
          const written = new Map<string, number>();
          heart.db.onStreamRecord(({ dynamodb: { NewImage: item = {} } }) => {
            // A release ends the epoch's life; it is the one write that takes the expiry down.
            if (item["lease_owner"] === undefined) return;
            const key = `${item["connection_id"]?.S ?? ""}/${item["lease_epoch"]?.N ?? ""}`;
            const expiresAtMs = Number(item["lease_expires_at_ms"]?.N);
            assert.ok(expiresAtMs >= (written.get(key) ?? 0), `${key} fell to ${expiresAtMs}`);
            written.set(key, expiresAtMs);
          });
          const tolds = [new Told(), new Told()];
          await heart.hold("a", tolds[0]);
          await heart.hold("b", tolds[1]);
          let n = 0;
          heart.fault = () => kinds[faults[n++ % faults.length]!];
          const random = seeded(seed);
          for (const step of steps) {
            await heart.clock.advance(random() * 7000);
            heart.clock.stepWall(step);
          }
          await heart.clock.advance(20_000);
          for (const told of tolds) assert.equal(told.lost.length, 0, "nobody else wrote");
          assert.ok(written.size === 2);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("leaves no timer behind once it is stopped", async () => {
    const heart = new Heart();
    await heart.hold("c");
    await heart.clock.advance(20_000);
    heart.beats.stop();
    assert.equal(heart.clock.pendingTimers, 0);
    const sent = heart.writes.length;
    await heart.clock.advance(60_000);
    assert.equal(heart.writes.length, sent);
  });
});

describe("the loop's health", () => {
  it("stays green while the store is away, with as many connections as a task may hold", async () => {
    const heart = new Heart();
    for (let n = 0; n < 1000; n++) await heart.hold(`c-${n}`);
    await heart.clock.advance(10_000);
    heart.fault = () => ({ kind: "no-answer" });
    for (let step = 0; step < 120; step++) {
      await heart.clock.advance(500);
      assert.equal(heart.beats.attempting(), true, `after ${(step + 1) * 500} ms of outage`);
    }
  });

  it("stays green with nothing to renew", async () => {
    const heart = new Heart();
    await heart.clock.advance(120_000);
    assert.equal(heart.beats.attempting(), true);
  });

  it("turns red when operations take all places and never end, whatever their limit says", async () => {
    const heart = new Heart({ maxConcurrentLeaseOps: 2, attemptTimeoutMs: 1_000_000 });
    for (let n = 0; n < 10; n++) await heart.hold(`c-${n}`);
    heart.fault = () => ({ kind: "no-answer" });
    await heart.clock.advance(2 * heartbeatMs + R_MAX_MS + 2000);
    assert.equal(heart.beats.attempting(), false);
  });

  it("turns red when the loop's timer never comes", async () => {
    const heart = new Heart();
    await heart.hold("c");
    await heart.clock.advance(7000);
    assert.equal(heart.beats.attempting(), true);
    // The process is alive and time passes, but the loop is dead: as after an exception that nobody caught.
    heart.beats.stop();
    await heart.clock.advance(R_MAX_MS + 2000);
    assert.equal(heart.beats.attempting(), false);
  });
});
