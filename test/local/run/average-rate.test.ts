import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AverageRate } from "../../../local/run/average-rate.ts";

describe("an average rate", () => {
  it("is 0 as long as there is nothing to compare", () => {
    const rate = new AverageRate(6_000);
    assert.equal(rate.perSecond, 0);
    rate.add(1_000, 500);
    assert.equal(rate.perSecond, 0);
  });

  it("is exact from the second sample on, and forgets what is older than its window", () => {
    const rate = new AverageRate(6_000);
    rate.add(0, 0);
    rate.add(1_000, 50);
    assert.equal(rate.perSecond, 50);
    for (let s = 2; s <= 20; s++) rate.add(s * 1_000, 50 + (s - 1) * 100);
    assert.equal(rate.perSecond, 100);
  });

  it("does not jump when the total is told in steps, whenever it is looked at", () => {
    const rate = new AverageRate(6_000);
    // 1,500 a second, told every second and read at uneven times.
    const total = (ms: number): number => Math.floor(ms / 1_000) * 1_500;
    for (let ms = 0, i = 0; ms < 60_000; ms += 1_003 + (i++ % 3) * 5) {
      rate.add(ms, total(ms));
      if (ms > 12_000) assert.ok(Math.abs(rate.perSecond - 1_500) <= 260, `${rate.perSecond} at ${ms}`);
    }
  });
});
