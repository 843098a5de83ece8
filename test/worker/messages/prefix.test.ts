import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { DurablePrefix, type Tracked } from "../../../worker/messages/prefix.ts";

interface Row extends Tracked {
  readonly cursor: string | undefined;
}

const make = (seq: number, cursor?: string): Row => ({ seq: BigInt(seq), cursor, durable: false });

function store(prefix: DurablePrefix, ...rows: Row[]): void {
  for (const one of rows) one.durable = true;
  prefix.advance();
}

describe("the durable prefix", () => {
  it("is undefined before the first durable row and rests on the first gap", () => {
    const prefix = new DurablePrefix();
    const rows = [1, 2, 3, 4].map((seq) => make(seq));
    for (const one of rows) prefix.add(one);
    assert.equal(prefix.checkpoint, undefined);
    store(prefix, rows[1]!, rows[3]!);
    assert.equal(prefix.checkpoint, undefined);
    store(prefix, rows[0]!);
    assert.deepEqual(prefix.checkpoint, { lastSeq: 2n });
    store(prefix, rows[2]!);
    assert.deepEqual(prefix.checkpoint, { lastSeq: 4n });
    assert.equal(prefix.size, 0);
  });

  it("gives the newest cursor up to the last seq", () => {
    const prefix = new DurablePrefix();
    const rows = [make(1, "a"), make(2), make(3, "c")];
    for (const one of rows) prefix.add(one);
    store(prefix, rows[0]!, rows[1]!);
    assert.deepEqual(prefix.checkpoint, { lastSeq: 2n, lastCursor: "a" });
    store(prefix, rows[2]!);
    assert.deepEqual(prefix.checkpoint, { lastSeq: 3n, lastCursor: "c" });
  });

  it("waits for a late row of a lower seq and for the repetition of a seq", () => {
    const prefix = new DurablePrefix();
    const [five, seven, six, again] = [make(5), make(7), make(6), make(7)];
    for (const one of [five, seven, six, again]) prefix.add(one);
    store(prefix, five, seven);
    assert.deepEqual(prefix.checkpoint, { lastSeq: 5n });
    store(prefix, six);
    assert.deepEqual(prefix.checkpoint, { lastSeq: 6n }, "7 is still being written again");
    store(prefix, again);
    assert.deepEqual(prefix.checkpoint, { lastSeq: 7n });
  });

  it("does not fall when what it claims is repeated", () => {
    const prefix = new DurablePrefix();
    const first = make(9);
    prefix.add(first);
    store(prefix, first);
    const again = make(4);
    prefix.add(again);
    assert.deepEqual(prefix.checkpoint, { lastSeq: 9n });
    store(prefix, again);
    assert.deepEqual(prefix.checkpoint, { lastSeq: 9n });
  });

  it("never passes a refused row, whatever becomes durable behind it, and keeps nothing of that", () => {
    const prefix = new DurablePrefix();
    const rows = [1, 2, 3, 4].map((seq) => make(seq));
    for (const one of rows) prefix.add(one);
    prefix.refuse(3n);
    store(prefix, rows[3]!, rows[0]!);
    assert.deepEqual(prefix.checkpoint, { lastSeq: 1n });
    store(prefix, rows[1]!);
    const later = make(5);
    prefix.add(later);
    store(prefix, later);
    assert.deepEqual(prefix.checkpoint, { lastSeq: 2n });
    assert.equal(prefix.size, 0);
  });

  it("stays cheap and small over a long stream that is never quite done", () => {
    const prefix = new DurablePrefix();
    let open = make(0);
    prefix.add(open);
    for (let seq = 1; seq <= 200_000; seq++) {
      const next = make(seq);
      prefix.add(next);
      store(prefix, open);
      open = next;
    }
    assert.deepEqual(prefix.checkpoint, { lastSeq: 199_999n });
    assert.equal(prefix.size, 1);
  });

  it("agrees at every step with the definition, for any seqs, order of completion and refusals", () => {
    const steps = fc.array(
      fc.record({
        push: fc.option(fc.integer({ min: 0, max: 30 }), { nil: undefined }),
        settle: fc.nat(),
        refuse: fc.nat({ max: 20 }).map((n) => n === 0),
      }),
      { maxLength: 80 },
    );
    fc.assert(
      fc.property(steps, (script) => {
        const prefix = new DurablePrefix();
        const pushed: Row[] = [];
        const pending: Row[] = [];
        const refused: Row[] = [];
        let last: bigint | undefined;
        for (const step of script) {
          if (step.push !== undefined) {
            const next = make(step.push);
            pushed.push(next);
            pending.push(next);
            prefix.add(next);
          } else {
            const [one] = pending.splice(step.settle % Math.max(1, pending.length), 1);
            if (one === undefined) continue;
            if (step.refuse) {
              refused.push(one);
              prefix.refuse(one.seq);
            } else store(prefix, one);
          }
          const claimed = prefix.checkpoint?.lastSeq;
          if (claimed !== undefined && claimed !== last) {
            for (const one of pushed) assert.ok(one.seq > claimed || one.durable, `${claimed} claimed over ${one.seq}`);
          }
          assert.ok(last === undefined || (claimed !== undefined && claimed >= last), "it fell");
          const open = [...pending, ...refused].map((one) => one.seq);
          const best = pushed
            .filter((one) => one.durable && open.every((seq) => seq > one.seq))
            .reduce<bigint | undefined>((a, { seq }) => (a === undefined || seq > a ? seq : a), undefined);
          if (best !== undefined) assert.ok(claimed !== undefined && claimed >= best, `${best} could be claimed`);
          last = claimed;
        }
      }),
      { numRuns: 1000 },
    );
  });
});
