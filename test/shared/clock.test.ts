import fc from "fast-check";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { getEventListeners } from "node:events";
import { describe, it } from "node:test";
import { AnchoredClock, sleep, SystemClock } from "../../shared/clock.ts";
import { SteppingClock } from "../support/stepping-clock.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const WALL_MS = 1_700_000_000_000;

describe("AnchoredClock", () => {
  it("starts from the wall clock and is carried forward by the monotonic one", () => {
    const clock = new SteppingClock(77, WALL_MS);
    const anchored = new AnchoredClock(clock);
    assert.equal(anchored.nowMs(), WALL_MS);
    clock.pass(1234);
    assert.equal(anchored.nowMs(), WALL_MS + 1234);
  });

  it("does not follow the wall clock, in either direction, until it is anchored anew", () => {
    for (const stepMs of [-3_600_000, 3_600_000]) {
      const clock = new SteppingClock(0, WALL_MS);
      const anchored = new AnchoredClock(clock);
      clock.stepWall(stepMs);
      clock.pass(1000);
      assert.equal(anchored.nowMs(), WALL_MS + 1000);
      anchored.reanchor();
      assert.equal(anchored.nowMs(), WALL_MS + 1000 + stepMs);
      clock.pass(5);
      assert.equal(anchored.nowMs(), WALL_MS + 1005 + stepMs);
    }
  });

  it("shows by how much the wall clock ran ahead, as after a suspension, and never less than that", () => {
    const clock = new SteppingClock(0, WALL_MS);
    const anchored = new AnchoredClock(clock);
    clock.pass(1000);
    assert.equal(anchored.leapMs(), 0);
    assert.equal(anchored.latestMs(), anchored.nowMs());
    clock.stepWall(7000);
    assert.equal(anchored.leapMs(), 7000);
    assert.equal(anchored.latestMs(), WALL_MS + 8000);
    anchored.reanchor();
    assert.equal(anchored.leapMs(), 0);
    assert.equal(anchored.nowMs(), WALL_MS + 8000);
  });

  it("does not let a wall clock that was set back hide a suspension", () => {
    const clock = new SteppingClock(0, WALL_MS);
    const anchored = new AnchoredClock(clock);
    clock.stepWall(-60_000);
    assert.equal(anchored.leapMs(), 0);
    clock.stepWall(9000);
    assert.equal(anchored.leapMs(), 9000);
    assert.equal(anchored.latestMs(), WALL_MS + 9000);
  });

  it("goes back to a former anchor, and from then on takes the wall clock's lead for an error of the wall clock", () => {
    const clock = new SteppingClock(0, WALL_MS);
    const anchored = new AnchoredClock(clock);
    const former = anchored.anchor;
    clock.stepWall(3_600_000);
    clock.pass(500);
    anchored.reanchor();
    anchored.restore(former);
    assert.equal(anchored.nowMs(), WALL_MS + 500);
    assert.equal(anchored.leapMs(), 0);
    clock.stepWall(4000);
    assert.equal(anchored.leapMs(), 4000);
  });

  it("gives whole milliseconds that never fall between two anchors", () => {
    const step = fc.tuple(fc.double({ min: 0, max: 5000, noNaN: true }), fc.integer({ min: -100_000, max: 100_000 }));
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const clock = new SteppingClock(0.3, WALL_MS);
        const anchored = new AnchoredClock(clock);
        let last = anchored.nowMs();
        for (const [passMs, wallStepMs] of steps) {
          clock.stepMonotonic(passMs);
          clock.stepWall(wallStepMs);
          const now = anchored.nowMs();
          assert.ok(Number.isInteger(now) && now >= last);
          last = now;
        }
      }),
    );
  });
});

describe("SystemClock", () => {
  const clock = new SystemClock();
  const fired = (delayMs: number): Promise<number> =>
    new Promise((resolve) => {
      const startedMs = clock.monotonicMs();
      clock.after(delayMs, () => resolve(clock.monotonicMs() - startedMs));
    });

  it("reads the machine's clocks", () => {
    const before = [clock.monotonicMs(), Date.now()] as const;
    const reading = [clock.monotonicMs(), clock.wallMs()] as const;
    const after = [clock.monotonicMs(), Date.now()] as const;
    for (const i of [0, 1] as const) assert.ok(before[i] <= reading[i] && reading[i] <= after[i]);
  });

  it("shares its monotonic origin with the other processes of the host", () => {
    const path = `${import.meta.dirname}/../../shared/clock.ts`;
    const program = `import { SystemClock } from ${JSON.stringify(path)}; console.log(new SystemClock().monotonicMs());`;
    const before = clock.monotonicMs();
    const other = Number(execFileSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" }));
    assert.ok(before <= other && other <= clock.monotonicMs(), `${other} is not after ${before}`);
  });

  it("never fires early, not by a fraction", async () => {
    const delays = [0, 0.4, 1, 1.9, 2.5, 7.3, 10.999, 20];
    const elapsed = await Promise.all(delays.map(fired));
    for (const [i, delayMs] of delays.entries()) {
      assert.ok(elapsed[i]! >= delayMs, `fired after ${elapsed[i]} ms instead of ${delayMs}`);
    }
  });

  it("does not take a delay beyond its timers' range for none", async () => {
    for (const delayMs of [2 ** 31, 1e12, Infinity]) {
      let early = false;
      const cancel = clock.after(delayMs, () => (early = true));
      await fired(20);
      cancel();
      assert.equal(early, false, `${delayMs} ms have not passed`);
    }
  });

  it("takes a time that is over already for now, without a warning of the platform", async () => {
    const warnings: string[] = [];
    const listener = (warning: Error): void => void warnings.push(warning.name);
    process.on("warning", listener);
    for (const delayMs of [-1, -807.3, -Infinity]) assert.ok((await fired(delayMs)) >= 0);
    process.off("warning", listener);
    assert.deepEqual(warnings, []);
  });

  it("does not fire once cancelled, and cancelling again is harmless", async () => {
    let calls = 0;
    const cancel = clock.after(1, () => calls++);
    cancel();
    cancel();
    await fired(10);
    assert.equal(calls, 0);
    const late = clock.after(0, () => calls++);
    await fired(10);
    late();
    assert.equal(calls, 1);
  });
});

describe("sleep", () => {
  it("resolves after the delay and leaves no timer", async () => {
    const clock = new VirtualClock();
    let awake = false;
    void sleep(clock, 100).then(() => (awake = true));
    await clock.advance(99);
    assert.equal(awake, false);
    await clock.advance(1);
    assert.equal(awake, true);
    assert.equal(clock.pendingTimers, 0);
  });

  it("resolves as soon as its signal aborts, and leaves neither timer nor listener", async () => {
    const clock = new VirtualClock();
    const abort = new AbortController();
    const sleeping = sleep(clock, 100, abort.signal);
    abort.abort(new Error("never to be seen"));
    await sleeping;
    assert.equal(clock.pendingTimers, 0);
    await sleep(clock, 100, abort.signal);
    assert.equal(clock.pendingTimers, 0, "not even begun after the abort");
  });

  it("leaves no listener on a signal that outlives it", async () => {
    const clock = new VirtualClock();
    const { signal } = new AbortController();
    const sleeping = sleep(clock, 100, signal);
    assert.equal(getEventListeners(signal, "abort").length, 1);
    await clock.advance(100);
    await sleeping;
    assert.equal(getEventListeners(signal, "abort").length, 0);
  });
});
