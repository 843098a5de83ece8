import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { TokenBucket } from "../../worker/token-bucket.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

describe("the token bucket", () => {
  it("starts full, drips at its rate and never holds more than the burst", async () => {
    const clock = new VirtualClock();
    const bucket = new TokenBucket(clock, 10, 5);
    assert.equal(bucket.available(), 5);
    bucket.take(5);
    assert.equal(bucket.available(), 0);
    assert.equal(bucket.waitMs(), 100);
    await clock.advance(99);
    assert.equal(bucket.available(), 0);
    await clock.advance(1);
    assert.equal(bucket.available(), 1);
    assert.equal(bucket.waitMs(), 0);
    await clock.advance(3_600_000);
    assert.equal(bucket.available(), 5);
  });

  it("may go into debt, and is empty until that has dripped in", async () => {
    const clock = new VirtualClock();
    const bucket = new TokenBucket(clock, 10, 5);
    bucket.take(8);
    assert.equal(bucket.available(), -3);
    assert.equal(bucket.waitMs(), 400);
    await clock.advance(400);
    assert.equal(bucket.available(), 1);
  });

  it("takes back what was not used, up to the burst", () => {
    const bucket = new TokenBucket(new VirtualClock(), 10, 5);
    bucket.take(4);
    bucket.giveBack(3);
    assert.equal(bucket.available(), 4);
    bucket.giveBack(100);
    assert.equal(bucket.available(), 5);
  });

  it("never gives out more than burst plus rate times time", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: 700 }), { maxLength: 40 }), async (waits) => {
        const clock = new VirtualClock({ settleTurns: 0 });
        const bucket = new TokenBucket(clock, 20, 6);
        let taken = 0;
        for (const ms of waits) {
          await clock.advance(ms);
          const n = Math.max(0, bucket.available());
          bucket.take(n);
          taken += n;
          assert.ok(taken <= 6 + (clock.monotonicMs() / 1000) * 20 + 1e-6);
        }
      }),
    );
  });
});
