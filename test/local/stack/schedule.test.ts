import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseRateMs } from "../../../local/serverless/functions.ts";
import { startSchedule } from "../../../local/triggers/schedule.ts";
import { ManualClock } from "./manual-clock.ts";

describe("a schedule", () => {
  /** Runs for `busyMs` each time, over ten minutes of a one-minute rate; gives the minutes at which runs began. */
  const startsMs = async (
    busyMs: (run: number) => number,
  ): Promise<{ starts: number[]; overlaps: number; delayed: number }> => {
    const clock = new ManualClock(0);
    const starts: number[] = [];
    let running = 0;
    let overlaps = 0;
    const schedule = startSchedule(60_000, clock, async () => {
      starts.push(clock.monotonicMs());
      if (++running > 1) overlaps++;
      const ms = busyMs(starts.length);
      if (ms > 0) await new Promise<void>((resolve) => clock.after(ms, resolve));
      running--;
    });
    await clock.advance(300_000);
    schedule.stop();
    await clock.advance(3_600_000);
    assert.equal(clock.pendingTimers, 0);
    return { starts, overlaps, delayed: schedule.stats.delayed };
  };

  it("fires at once and then on the grid", async () => {
    const { starts } = await startsMs(() => 0);
    assert.deepEqual(starts, [0, 60_000, 120_000, 180_000, 240_000, 300_000]);
  });

  it("keeps to the grid when runs take almost the whole period", async () => {
    const { starts } = await startsMs(() => 59_000);
    assert.deepEqual(starts, [0, 60_000, 120_000, 180_000, 240_000, 300_000]);
  });

  it("never overlaps, and makes up for a time that came while a run was busy", async () => {
    const { starts, overlaps, delayed } = await startsMs((run) => (run === 1 ? 130_000 : 1_000));
    assert.deepEqual(
      starts,
      [0, 130_000, 180_000, 240_000, 300_000],
      "two times were missed, one run makes up for both",
    );
    assert.equal(overlaps, 0);
    assert.equal(delayed, 2);
  });

  it("does not begin the run that was due when it is stopped", async () => {
    const clock = new ManualClock(0);
    let runs = 0;
    const schedule = startSchedule(1_000, clock, async () => {
      runs++;
      await new Promise<void>((resolve) => clock.after(5_000, resolve));
    });
    await clock.advance(2_500);
    schedule.stop();
    await clock.advance(60_000);
    assert.equal(runs, 1);
  });
});

describe("a rate expression", () => {
  it("gives the period in milliseconds", () => {
    assert.equal(parseRateMs("rate(1 minute)", "at"), 60_000);
    assert.equal(parseRateMs("rate(15 minutes)", "at"), 900_000);
    assert.equal(parseRateMs("rate(2 hours)", "at"), 7_200_000);
    assert.equal(parseRateMs("rate(1 day)", "at"), 86_400_000);
  });

  for (const bad of ["cron(0 * * * ? *)", "rate(0 minutes)", "rate(1 second)", "1 minute", ""]) {
    it(`refuses ${JSON.stringify(bad)}, naming the place`, () =>
      assert.throws(() => parseRateMs(bad, "f.schedule"), /f\.schedule/));
  }
});
