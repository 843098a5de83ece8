import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { ClockGuard } from "../../../worker/lease/clock-guard.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const SETTINGS = { skewMs: 1000, windowMs: 60_000, minObservations: 3 };
const START_MS = 1_700_000_000_000;

/** One answer of a reference that is exact: how long the request took to it and back, and the pause before it. */
interface Exchange {
  readonly thereMs: number;
  readonly backMs: number;
  readonly pauseMs: number;
}

const exchange = fc.record({
  thereMs: fc.oneof(fc.nat({ max: 20 }), fc.nat({ max: 30_000 })),
  backMs: fc.oneof(fc.nat({ max: 20 }), fc.nat({ max: 30_000 })),
  pauseMs: fc.nat({ max: 15_000 }),
});

/** Runs the exchanges with a clock that is `offsetMs` ahead of the reference; `look` is called after each. */
async function converse(offsetMs: number, exchanges: readonly Exchange[], look: (guard: ClockGuard) => void) {
  const clock = new VirtualClock({ settleTurns: 0 });
  const guard = new ClockGuard(clock, SETTINGS);
  const referenceMs = (): number => START_MS + clock.monotonicMs();
  for (const { thereMs, backMs, pauseMs } of exchanges) {
    await clock.advance(pauseMs);
    const sentAtMs = referenceMs() + offsetMs;
    await clock.advance(thereMs);
    const dateMs = Math.floor(referenceMs() / 1000) * 1000;
    await clock.advance(backMs);
    guard.observe({ sentAtMs, receivedAtMs: referenceMs() + offsetMs, dateMs });
    look(guard);
  }
  return guard;
}

/** Answers without delay at all points of a second: they bound the offset as tightly as answers can. */
const dense: readonly Exchange[] = Array.from({ length: 60 }, () => ({ thereMs: 0, backMs: 0, pauseMs: 137 }));

describe("the clock guard", () => {
  it("has the true offset inside its interval, whatever the offset and the delays", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: -120_000, max: 120_000 }),
        fc.array(exchange, { maxLength: 30 }),
        async (offsetMs, exchanges) => {
          await converse(offsetMs, exchanges, (guard) => {
            const interval = guard.interval();
            if (interval === undefined) return;
            assert.ok(interval.lowMs <= offsetMs && offsetMs <= interval.highMs, JSON.stringify(interval));
          });
        },
      ),
    );
  });

  it("never proves an offset within the skew to be beyond it, under any delays", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: -SETTINGS.skewMs, max: SETTINGS.skewMs }),
        fc.array(exchange, { maxLength: 30 }),
        async (offsetMs, exchanges) => {
          await converse(offsetMs, exchanges, (guard) => assert.equal(guard.beyondSkew(), false));
        },
      ),
    );
  });

  it("proves an offset that is beyond the skew, in either direction, once answers come at all points of a second", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1200, max: 100_000 }), fc.boolean(), async (size, behind) => {
        const offsetMs = behind ? -size : size;
        const guard = await converse(offsetMs, dense, () => undefined);
        assert.equal(guard.beyondSkew(), true);
        assert.ok(Math.abs(guard.provenOffsetMs() - offsetMs) < 200, `${guard.provenOffsetMs()} of ${offsetMs}`);
      }),
      { numRuns: 30 },
    );
  });

  it("says nothing before it has seen as many answers as it wants", async () => {
    const guard = await converse(50_000, dense.slice(0, 2), (seen) => assert.equal(seen.beyondSkew(), false));
    assert.equal(guard.interval(), undefined);
    assert.equal(guard.provenOffsetMs(), 0);
  });

  it("starts anew when answers contradict each other, also within one moment", async () => {
    const clock = new VirtualClock();
    const guard = new ClockGuard(clock, SETTINGS);
    const say = (offsetMs: number): void =>
      guard.observe({ sentAtMs: START_MS + offsetMs, receivedAtMs: START_MS + offsetMs, dateMs: START_MS });
    for (let n = 0; n < 5; n++) say(30_000);
    assert.equal(guard.beyondSkew(), true);
    say(-30_000);
    assert.equal(guard.beyondSkew(), false);
    assert.equal(guard.interval(), undefined);
    say(30_000);
    say(30_000);
    assert.equal(guard.beyondSkew(), false, "what was seen before the contradiction is forgotten");
    say(30_000);
    assert.equal(guard.beyondSkew(), true);
    await clock.advance(10_000);
    say(-30_000);
    assert.equal(guard.beyondSkew(), false, "contradictions between distant answers too");
  });

  it("forgets what is older than its window", async () => {
    const clock = new VirtualClock();
    const guard = new ClockGuard(clock, SETTINGS);
    for (let n = 0; n < 3; n++) {
      guard.observe({ sentAtMs: START_MS + 9000, receivedAtMs: START_MS + 9000, dateMs: START_MS });
    }
    assert.equal(guard.beyondSkew(), true);
    await clock.advance(SETTINGS.windowMs + 1);
    assert.equal(guard.interval(), undefined);
  });

  it("knows nothing after a reset", async () => {
    const guard = await converse(50_000, dense, () => undefined);
    guard.reset();
    assert.equal(guard.interval(), undefined);
    assert.equal(guard.beyondSkew(), false);
  });
});
