import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { DialGate } from "../../../worker/connection/dial-gate.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

/** Enters the gate `count` times and notes who was let in. */
function crowd(gate: DialGate, count: number): { readonly admitted: number[]; readonly cancels: (() => void)[] } {
  const admitted: number[] = [];
  const cancels = Array.from({ length: count }, (_, n) => gate.enter(() => admitted.push(n)));
  return { admitted, cancels };
}

describe("the dial gate", () => {
  it("lets in at most so many at once, first come, first served", () => {
    const gate = new DialGate(new VirtualClock(), 2, 1000);
    const { admitted } = crowd(gate, 4);
    assert.deepEqual(admitted, [0, 1]);
    gate.leave();
    assert.deepEqual(admitted, [0, 1, 2]);
    gate.leave();
    assert.deepEqual(admitted, [0, 1, 2, 3]);
  });

  it("starts no more than its rate after the first burst, a quarter of a second's worth", async () => {
    const clock = new VirtualClock();
    const gate = new DialGate(clock, 1000, 100);
    const { admitted } = crowd(gate, 200);
    assert.equal(admitted.length, 25);
    await clock.advance(500);
    assert.ok(Math.abs(admitted.length - 75) <= 1, `${admitted.length} after half a second`);
    await clock.advance(1000);
    assert.ok(Math.abs(admitted.length - 175) <= 1, `${admitted.length} after one and a half`);
    await clock.advance(10_000);
    assert.equal(admitted.length, 200);
    assert.equal(clock.pendingTimers, 0);
  });

  it("forgets whoever cancels while waiting, and gives the place to the next", () => {
    const gate = new DialGate(new VirtualClock(), 1, 1000);
    const { admitted, cancels } = crowd(gate, 3);
    cancels[1]?.();
    gate.leave();
    assert.deepEqual(admitted, [0, 2]);
  });

  it("is not given a place back by a cancel that comes after the turn", () => {
    const gate = new DialGate(new VirtualClock(), 1, 1000);
    const { admitted, cancels } = crowd(gate, 2);
    cancels[0]?.();
    assert.deepEqual(admitted, [0]);
    gate.leave();
    assert.deepEqual(admitted, [0, 1]);
  });

  it("goes on when somebody leaves at once, while being let in", () => {
    const gate = new DialGate(new VirtualClock(), 1, 1000);
    const admitted: number[] = [];
    gate.enter(() => admitted.push(-1));
    for (let n = 0; n < 5; n++) {
      gate.enter(() => {
        admitted.push(n);
        gate.leave();
      });
    }
    gate.leave();
    assert.deepEqual(admitted, [-1, 0, 1, 2, 3, 4]);
  });

  it("never has more inside than allowed, nor lets in more than burst and rate give, whatever happens", async () => {
    const step = fc.oneof(
      fc.constant("enter" as const),
      fc.constant("leave" as const),
      fc.constant("cancel" as const),
      fc.nat({ max: 300 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const clock = new VirtualClock({ settleTurns: 0 });
        const gate = new DialGate(clock, 3, 20);
        let inside = 0;
        let started = 0;
        const cancels: (() => void)[] = [];
        for (const one of steps) {
          if (one === "enter") {
            cancels.push(
              gate.enter(() => {
                inside++;
                started++;
              }),
            );
          } else if (one === "cancel") cancels.shift()?.();
          else if (one === "leave" && inside > 0) {
            inside--;
            gate.leave();
          } else if (typeof one === "number") await clock.advance(one);
          assert.ok(inside <= 3, `${inside} inside`);
          assert.ok(started <= 5 + (clock.monotonicMs() / 1000) * 20 + 1e-6, `${started} started`);
        }
      }),
    );
  });
});
