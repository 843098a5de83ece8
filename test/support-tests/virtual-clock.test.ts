import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sleep } from "../../shared/clock.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

describe("the virtual clock", () => {
  it("fires timers in order of their due times, equal ones as they were set", async () => {
    const clock = new VirtualClock({ monotonicMs: 1000 });
    const fired: string[] = [];
    const note = (name: string) => () => fired.push(`${name}@${clock.monotonicMs()}`);
    clock.after(20, note("late"));
    clock.after(10, note("first"));
    clock.after(10, note("second"));
    clock.after(30, note("beyond"));
    clock.after(-5, note("past"));
    const cancel = clock.after(15, note("cancelled"));
    cancel();
    cancel();
    await clock.advance(20);
    assert.deepEqual(fired, ["past@1000", "first@1010", "second@1010", "late@1020"]);
    assert.equal(clock.pendingTimers, 1);
  });

  it("lets promise chains run between timers, and fires what they set", async () => {
    const clock = new VirtualClock();
    const steps: number[] = [];
    const loop = async (): Promise<void> => {
      for (let i = 0; i < 3; i++) {
        await sleep(clock, 100);
        await Promise.resolve().then(() => undefined);
        steps.push(clock.monotonicMs());
      }
    };
    const done = loop();
    await clock.advance(300);
    assert.deepEqual(steps, [100, 200, 300]);
    await done;
  });

  it("keeps wall and monotonic time apart", async () => {
    const clock = new VirtualClock({ wallMs: 5000, monotonicMs: 70 });
    const other = clock.machine(-300);
    clock.stepWall(-1000);
    await clock.advance(10);
    assert.deepEqual([clock.wallMs(), clock.monotonicMs()], [4010, 80]);
    other.stepWall(100);
    assert.deepEqual([other.wallMs(), other.monotonicMs(), clock.wallMs()], [3810, 80, 4010]);
    let fired = false;
    other.after(5, () => {
      fired = true;
    });
    await clock.advance(5);
    assert.equal(fired, true);
  });

  it("advances until a condition holds, and no further", async () => {
    const clock = new VirtualClock();
    let count = 0;
    const tick = (): void => {
      count++;
      clock.after(100, tick);
    };
    tick();
    assert.equal(await clock.advanceUntil(() => count === 4, 1000), 300);
    assert.equal(clock.monotonicMs(), 300);
    assert.equal(await clock.advanceUntil(() => true, 1000), 0);
    await assert.rejects(
      clock.advanceUntil(() => false, 250),
      /does not hold after 250 ms/,
    );
    assert.equal(clock.monotonicMs(), 550);
    assert.equal(await clock.advanceUntil(() => clock.monotonicMs() >= 610, 60), 60);
  });

  it("passes on what a timer throws", async () => {
    const clock = new VirtualClock();
    clock.after(1, () => {
      throw new Error("boom");
    });
    await assert.rejects(clock.advance(1), /boom/);
    await clock.advance(1);
  });

  it("refuses durations that are none, and two runs at once", async () => {
    const clock = new VirtualClock();
    await assert.rejects(clock.advance(-1), /needs a number of milliseconds/);
    await assert.rejects(clock.advance(Number.NaN), /needs a number of milliseconds/);
    assert.throws(() => clock.after(Number.NaN, () => undefined), /delayMs must be a finite number/);
    const running = clock.advance(1);
    await assert.rejects(clock.advance(1), /already being advanced/);
    await running;
  });
});
