import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fullJitter, jittered, shuffled } from "../../shared/random.ts";

const drawn = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const delayMs = fc.integer({ min: 1, max: 86_400_000 });

describe("random", () => {
  it("jittered stays within its share of the base, and its ends and middle are where they should be", () => {
    fc.assert(
      fc.property(delayMs, fc.double({ min: 0, max: 1, noNaN: true }), drawn, (baseMs, ratio, value) => {
        const ms = jittered(baseMs, ratio, () => value);
        assert.ok(ms >= baseMs * (1 - ratio) - 1e-6 && ms <= baseMs * (1 + ratio) + 1e-6);
      }),
    );
    assert.equal(
      jittered(5000, 0.2, () => 0),
      4000,
    );
    assert.equal(
      jittered(5000, 0.2, () => 0.5),
      5000,
    );
    assert.ok(Math.abs(jittered(5000, 0.2, () => 1 - Number.EPSILON) - 6000) < 1e-6);
  });

  it("fullJitter draws from a doubling range up to its cap, for any number of attempts", () => {
    fc.assert(
      fc.property(delayMs, delayMs, fc.nat(), drawn, (baseMs, capMs, attempt, value) => {
        const ms = fullJitter(baseMs, capMs, attempt, () => value);
        assert.ok(ms >= 0 && ms <= capMs);
      }),
    );
    assert.deepEqual(
      [0, 1, 2, 3, 4, 5, 100, 2000].map((attempt) => fullJitter(250, 10_000, attempt, () => 0.5)),
      [125, 250, 500, 1000, 2000, 4000, 5000, 5000],
    );
  });

  it("shuffled keeps what it was given, and leaves the original alone", () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), fc.infiniteStream(drawn), (items, stream) => {
        const original = [...items];
        const result = shuffled(items, () => Number(stream.next().value));
        assert.deepEqual(items, original);
        assert.deepEqual(result.toSorted(), original.toSorted());
      }),
    );
  });

  it("shuffled can bring each item to each place", () => {
    let state = 1;
    const random = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
    const seen = new Set<string>();
    for (let i = 0; i < 500; i++)
      shuffled(["a", "b", "c", "d"], random).forEach((item, at) => seen.add(item + String(at)));
    assert.equal(seen.size, 16);
  });
});
