import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { DialGate } from "../../../worker/connection/dial-gate.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

/** Enters the gate `count` times and notes who was let in. */
function crowd(
  gate: DialGate,
  count: number,
  host = "a",
): { readonly admitted: number[]; readonly cancels: (() => void)[] } {
  const admitted: number[] = [];
  const cancels = Array.from({ length: count }, (_, n) => gate.enter(host, () => admitted.push(n)));
  return { admitted, cancels };
}

describe("the dial gate", () => {
  it("lets in at most so many at once, first come, first served", () => {
    const gate = new DialGate(new VirtualClock(), 2, 1000);
    const { admitted } = crowd(gate, 4);
    assert.deepEqual(admitted, [0, 1]);
    gate.leave("a");
    assert.deepEqual(admitted, [0, 1, 2]);
    gate.leave("a");
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
    gate.leave("a");
    assert.deepEqual(admitted, [0, 2]);
  });

  it("is not given a place back by a cancel that comes after the turn", () => {
    const gate = new DialGate(new VirtualClock(), 1, 1000);
    const { admitted, cancels } = crowd(gate, 2);
    cancels[0]?.();
    assert.deepEqual(admitted, [0]);
    gate.leave("a");
    assert.deepEqual(admitted, [0, 1]);
  });

  it("goes on when somebody leaves at once, while being let in", () => {
    const gate = new DialGate(new VirtualClock(), 1, 1000);
    const admitted: number[] = [];
    gate.enter("a", () => admitted.push(-1));
    for (let n = 0; n < 5; n++) {
      gate.enter("a", () => {
        admitted.push(n);
        gate.leave("a");
      });
    }
    gate.leave("a");
    assert.deepEqual(admitted, [-1, 0, 1, 2, 3, 4]);
  });

  it("lets the hosts take turns: a crowd at one does not make another wait behind it", () => {
    const gate = new DialGate(new VirtualClock(), 10, 1000);
    const silent = crowd(gate, 1000, "silent");
    assert.equal(silent.admitted.length, 8, "one host never fills all places");
    const other = crowd(gate, 100, "other");
    assert.equal(other.admitted.length, 2, "some are left for the others");
    // The other host answers at once, the silent one never.
    for (let n = 0; n < 98; n++) gate.leave("other");
    assert.equal(other.admitted.length, 100);
    assert.equal(silent.admitted.length, 8);
    gate.leave("silent");
    assert.equal(silent.admitted.length, 9);
  });

  it("serves every host in its turn when places are short", () => {
    const gate = new DialGate(new VirtualClock(), 1, 1000);
    const order: string[] = [];
    for (const host of ["a", "a", "a", "b", "b", "c"]) gate.enter(host, () => order.push(host));
    while (order.length < 6) gate.leave(order.at(-1) ?? "");
    assert.deepEqual(order, ["a", "a", "b", "c", "a", "b"]);
  });

  it("keeps nothing of a host that neither dials nor waits", () => {
    const gate = new DialGate(new VirtualClock(), 2, 1_000_000);
    for (let n = 0; n < 100; n++) {
      gate.enter(`dialled-${n}`, () => undefined);
      gate.leave(`dialled-${n}`);
    }
    assert.equal(gate.hosts, 0);
    gate.enter("a", () => undefined);
    gate.enter("b", () => undefined);
    const gaveUp = gate.enter("c", () => undefined);
    assert.equal(gate.hosts, 3);
    gaveUp();
    assert.equal(gate.hosts, 2);
    gaveUp();
    gate.leave("a");
    assert.equal(gate.hosts, 1, "b dials still");
    gate.leave("b");
    assert.equal(gate.hosts, 0);
  });

  it("is told by whom a place is given back", () => {
    const gate = new DialGate(new VirtualClock(), 1, 1000);
    assert.throws(() => gate.leave("a"), /nobody dials a/);
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
        const inside: string[] = [];
        let entered = 0;
        let started = 0;
        const cancels: (() => void)[] = [];
        for (const one of steps) {
          if (one === "enter") {
            const host = `h${entered++ % 3}`;
            cancels.push(
              gate.enter(host, () => {
                inside.push(host);
                started++;
              }),
            );
          } else if (one === "cancel") cancels.shift()?.();
          else if (one === "leave") {
            const host = inside.shift();
            if (host !== undefined) gate.leave(host);
          } else if (typeof one === "number") await clock.advance(one);
          assert.ok(inside.length <= 3, `${inside.length} inside`);
          assert.ok(started <= 5 + (clock.monotonicMs() / 1000) * 20 + 1e-6, `${started} started`);
        }
      }),
    );
  });
});
