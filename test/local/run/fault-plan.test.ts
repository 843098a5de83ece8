import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LEAD_MS, neededMs, planFaults, recoveryMs, type RecoveryTimings } from "../../../local/run/fault-plan.ts";
import { seededRandom } from "../../../local/run/seeded-random.ts";

const timings: RecoveryTimings = {
  leaseMs: 20_000,
  skewMs: 1_000,
  sweepMs: 10_000,
  quietQueueMs: 30_000,
  eventDelayMs: 10_000,
  stream: true,
  queue: true,
  taskEvents: true,
};
const counts = { crash: 2, kill: 1, term: 1, freeze: 1 };

describe("the fault plan", () => {
  it("plays all faults, none too early, and leaves each the time to be recovered from", () => {
    const speechMs = neededMs(counts, timings) + 10_000;
    const plan = planFaults(counts, timings, speechMs, seededRandom(3));
    assert.deepEqual(plan.map(({ kind }) => kind).sort(), ["crash", "crash", "freeze", "kill", "term"]); // prettier-ignore
    assert.ok((plan[0]?.atMs ?? 0) >= LEAD_MS);
    plan.forEach(({ kind, atMs }, at) => {
      const next = plan[at + 1]?.atMs ?? speechMs;
      assert.ok(next - atMs > recoveryMs(kind, timings), `${kind} at ${atMs}, next at ${next}`);
    });
  });

  it("is the same for the same seed, and another for another", () => {
    const kinds = (seed: number) => planFaults(counts, timings, 300_000, seededRandom(seed)).map(({ kind }) => kind).join(); // prettier-ignore
    assert.equal(kinds(1), kinds(1));
    assert.ok([2, 3, 4, 5].some((seed) => kinds(seed) !== kinds(1)));
  });

  it("refuses a speech that is too short, and needs no time for no faults", () => {
    const needed = neededMs(counts, timings);
    assert.throws(() => planFaults(counts, timings, needed - 1, seededRandom(1)), /5 faults do not fit into/);
    const none = { crash: 0, kill: 0, term: 0, freeze: 0 };
    assert.equal(neededMs(none, timings), 0);
    assert.deepEqual(planFaults(none, timings, 1, seededRandom(1)), []);
  });

  it("knows who notices what, and how late", () => {
    const kill = (change: Partial<RecoveryTimings>) => recoveryMs("kill", { ...timings, ...change });
    assert.ok(kill({}) <= 14_000);
    assert.ok(kill({ eventDelayMs: 2_000 }) <= 6_000);
    assert.equal(kill({ taskEvents: false }), recoveryMs("freeze", timings));
    assert.ok(kill({ eventDelayMs: 100_000 }) <= recoveryMs("freeze", timings), "the lease ends all the same");
    assert.ok(recoveryMs("crash", timings) <= 3_000);
    assert.ok(recoveryMs("crash", { ...timings, stream: false }) > timings.sweepMs);
    assert.ok(recoveryMs("crash", { ...timings, queue: false }) > timings.quietQueueMs);
  });
});
