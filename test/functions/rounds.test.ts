import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { runRounds } from "../../functions/core/rounds.ts";
import { sleep } from "../../shared/clock.ts";
import { VirtualClock } from "../support/virtual-clock.ts";
import { recordingLogger } from "./support/log.ts";

const TIMEOUT_MS = 60_000;

/** One invocation in virtual time, told its rounds' starts relative to its own. */
function invocation(everyMs: number, round: (n: number, signal: AbortSignal) => Promise<void>, timeoutMs = TIMEOUT_MS) {
  const clock = new VirtualClock({ monotonicMs: 1_234_567 });
  const beganMs = clock.monotonicMs();
  const logger = recordingLogger();
  const starts: number[] = [];
  const remainingMs = () => beganMs + timeoutMs - clock.monotonicMs();
  const outcome = runRounds({ clock, remainingMs, logger }, { name: "sweep", everyMs }, (signal) => {
    starts.push(clock.monotonicMs() - beganMs);
    return round(starts.length, signal);
  }).then(
    (result) => ({ result, error: undefined }),
    (error: unknown) => ({ result: undefined, error: error as Error }),
  );
  return { clock, logger, starts, outcome, elapsedMs: () => clock.monotonicMs() - beganMs };
}

const nothing = () => Promise.resolve();

describe("runRounds", () => {
  it("runs at once and every 10 s, until the next scheduled invocation takes over", async () => {
    const { clock, starts, outcome } = invocation(10_000, nothing);
    await clock.advance(120_000);
    assert.deepEqual(starts, [0, 10_000, 20_000, 30_000, 40_000, 50_000]);
    assert.deepEqual((await outcome).result, { ran: 6, failed: 0 });
  });

  it("ends soon after its last round, so that the next invocation is not kept waiting", async () => {
    const { clock, outcome } = invocation(10_000, nothing);
    let ended = false;
    void outcome.then(() => (ended = true));
    await clock.advance(49_999);
    assert.equal(ended, false);
    await clock.advance(1);
    assert.equal(ended, true);
    assert.equal(clock.pendingTimers, 0);
  });

  it("takes an interval that does not divide the minute, and one as long as the minute", async () => {
    const odd = invocation(7_000, nothing);
    await odd.clock.advance(120_000);
    assert.deepEqual(odd.starts, [0, 7_000, 14_000, 21_000, 28_000, 35_000, 42_000, 49_000, 56_000]);
    const long = invocation(60_000, nothing);
    await long.clock.advance(120_000);
    assert.deepEqual(long.starts, [0]);
  });

  it("never overlaps rounds: after a long one the next comes at once", async () => {
    const run: { clock?: VirtualClock } = {};
    const { clock, starts } = invocation(10_000, (n) => (n === 1 ? sleep(run.clock!, 12_500) : Promise.resolve()));
    run.clock = clock;
    await clock.advance(25_000);
    assert.deepEqual(starts, [0, 12_500, 22_500]);
  });

  it("does not begin a round that would be killed in the middle", async () => {
    const { clock, starts, outcome } = invocation(10_000, nothing, 32_999);
    await clock.advance(120_000);
    assert.deepEqual(starts, [0, 10_000, 20_000], "at 30 s not even three seconds would be left");
    assert.deepEqual((await outcome).result, { ran: 3, failed: 0 });
    const enough = invocation(10_000, nothing, 33_000);
    await enough.clock.advance(120_000);
    assert.equal(enough.starts.length, 4);
  });

  it("aborts a round shortly before the invocation would be killed", async () => {
    let abortedAtMs: number | undefined;
    const run = invocation(10_000, async (n, signal) => {
      if (n < 6) return;
      await sleep(run.clock, 3_600_000, signal);
      abortedAtMs = run.elapsedMs();
    });
    await run.clock.advance(120_000);
    assert.equal(abortedAtMs, 59_000);
    assert.deepEqual((await run.outcome).result, { ran: 6, failed: 0 });
  });

  it("logs and counts a failed round, and runs the next", async () => {
    const { clock, starts, logger, outcome } = invocation(10_000, (n) =>
      n % 2 === 0 ? Promise.reject(new Error(`broken ${n}`)) : Promise.resolve(),
    );
    await clock.advance(60_000);
    assert.equal(starts.length, 6);
    assert.deepEqual((await outcome).result, { ran: 6, failed: 3 });
    assert.deepEqual(
      logger.lines.map(({ level, message, fields }) => [level, message, fields["round"], fields["error"]]),
      [2, 4, 6].map((n) => ["error", "sweep failed", n, `broken ${n}`]),
    );
  });

  it("counts a round that throws before its first await as failed, too", async () => {
    const { clock, outcome } = invocation(30_000, (n) => {
      if (n === 1) throw new Error("at once");
      return Promise.resolve();
    });
    await clock.advance(60_000);
    assert.deepEqual((await outcome).result, { ran: 2, failed: 1 });
  });

  it("fails when every round failed, so that the function's alarm sees it", async () => {
    const { clock, starts, outcome } = invocation(10_000, () => Promise.reject(new Error("table is gone")));
    await clock.advance(60_000);
    const { error } = await outcome;
    assert.equal(starts.length, 6);
    assert.match(error!.message, /every sweep of this invocation failed \(6\)/);
    assert.equal((error!.cause as Error).message, "table is gone");
  });

  it("fails when there was no time for a single round", async () => {
    const { clock, starts, outcome } = invocation(10_000, nothing, 2_000);
    await clock.advance(60_000);
    assert.deepEqual(starts, []);
    assert.match((await outcome).error!.message, /no time for a sweep: 2000 ms are left/);
  });
});
