import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Random } from "../../../shared/random.ts";
import type { Lane } from "../../../worker/messages/writer.ts";
import type { Fault } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { bench, keysOf, row, seeded, TABLE, TOO_LONG, type Bench, type Told } from "./support.ts";

interface Step {
  readonly lane: number;
  readonly rows: number;
  readonly kind: "new" | "repeat" | "side" | "large" | "refused";
  readonly waitMs: number;
}

interface Sent {
  readonly id: string;
  readonly lane: Lane;
  readonly told: Told;
  readonly seqs: bigint[];
  readonly side: bigint[];
  next: bigint;
  last: bigint;
}

const LARGE = "<ü>".repeat(250_000);
const payloadOf = (id: string, seq: bigint): string => (seq % 1000n === 999n ? LARGE : `${id} ${seq}`);

const step: fc.Arbitrary<Step> = fc.record({
  lane: fc.nat({ max: 4 }),
  rows: fc.integer({ min: 1, max: 40 }),
  kind: fc.oneof(
    { weight: 12, arbitrary: fc.constant("new" as const) },
    { weight: 3, arbitrary: fc.constantFrom("repeat" as const, "side" as const) },
    { weight: 1, arbitrary: fc.constantFrom("large" as const, "refused" as const) },
  ),
  waitMs: fc.nat({ max: 60 }),
});

function randomFault(random: Random, keys: readonly string[], calm: () => boolean): Fault | undefined {
  const drawn = random();
  if (calm()) return undefined;
  if (drawn < 0.35) {
    return { kind: "delay", ms: Math.floor(random() * 400), applyAt: random() < 0.5 ? "start" : "end" };
  }
  if (drawn < 0.6) {
    const left = Array.from({ length: 25 }, () => random() < 0.4);
    return { kind: "unprocessed", select: (index) => left[index] === true };
  }
  if (drawn < 0.7) return { kind: "throttle" };
  if (drawn < 0.78) return { kind: "apply-then-error" };
  // A request that DynamoDB would refuse is not applied later either.
  const sound = keys.every((key) => BigInt(key.slice(key.indexOf("/") + 1)) < TOO_LONG);
  if (drawn < 0.86 && sound) return { kind: "delayed-apply", applyAfterMs: Math.floor(random() * 1000) };
  return drawn < 0.92 ? { kind: "server-error" } : undefined;
}

function push(to: Sent, { kind, rows }: Step): void {
  for (let i = 0; i < (kind === "large" || kind === "refused" ? 1 : rows); i++) {
    if (kind === "side") {
      const seq = BigInt(to.side.length + 1);
      to.side.push(seq);
      to.lane.push(row(`${to.id}#unpositioned`, seq), { checkpointed: false });
      continue;
    }
    if (kind === "repeat") to.next = to.last > 5n ? to.last - 5n : 1n;
    if (kind === "large") to.next += 999n - (to.next % 1000n);
    const seq = kind === "refused" ? TOO_LONG + 10n * to.next : to.next++;
    if (seq > to.last && kind !== "refused") to.last = seq;
    to.seqs.push(seq);
    to.lane.push(row(to.id, seq, { payload: payloadOf(to.id, seq), cursor: `at ${seq}` }));
  }
}

/** Every row up to the checkpoint must be in the table, whole; large ones with all their parts. */
function checkClaims({ db }: Bench, sent: readonly Sent[], claimed: Map<string, bigint>): void {
  const items = new Map(
    db.items(TABLE).map((item) => [`${item["connection_id"]?.S ?? ""}/${item["seq"]?.N ?? ""}`, item]),
  );
  for (const { id, lane, seqs } of sent) {
    const { checkpoint } = lane;
    const before = claimed.get(id);
    if (checkpoint === undefined) {
      assert.equal(before, undefined);
      continue;
    }
    assert.ok(before === undefined || checkpoint.lastSeq >= before, "the checkpoint fell");
    assert.equal(checkpoint.lastCursor, `at ${checkpoint.lastSeq}`);
    claimed.set(id, checkpoint.lastSeq);
    for (const seq of new Set(seqs)) {
      if (seq > checkpoint.lastSeq || (before !== undefined && seq <= before)) continue;
      const item = items.get(`${id}/${seq}`);
      assert.ok(item !== undefined, `${id} claims ${checkpoint.lastSeq}, but ${seq} is not stored`);
      if (item["parts"] === undefined) assert.equal(item["payload"]?.S, payloadOf(id, seq));
      else {
        const parts = Array.from({ length: Number(item["parts"].N) }, (_, i) => items.get(`${id}#${seq}/${i + 1}`));
        const bytes = Buffer.concat(parts.map((part) => part?.["payload"]?.B ?? new Uint8Array()));
        assert.ok(bytes.equals(Buffer.from(LARGE)), `${id} ${seq} is not whole`);
        assert.equal(item["sha256"]?.S, createHash("sha256").update(bytes).digest("hex"));
      }
    }
  }
}

describe("whatever happens to requests", () => {
  it("no checkpoint ever covers a row that is not stored, and in the end every row is", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 50 }), fc.nat(), async (steps, seed) => {
        const random = seeded(seed);
        let calm = false;
        const claimed = new Map<string, bigint>();
        const it = bench({ random, faults: (call) => randomFault(random, keysOf(call), () => calm) });
        const sent: Sent[] = Array.from({ length: 5 }, (_, i) => {
          return { id: `c${i}`, ...it.lane(), seqs: [], side: [], next: 1n, last: 0n };
        });
        for (const one of steps) {
          push(sent[one.lane]!, one);
          // The claims are looked at between any two events, as a kill would find them.
          const endMs = it.clock.monotonicMs() + one.waitMs;
          while (it.clock.monotonicMs() < endMs) {
            await it.clock.advance(Math.min(5, endMs - it.clock.monotonicMs()));
            checkClaims(it, sent, claimed);
          }
        }
        calm = true;
        await it.clock.advance(60_000);
        checkClaims(it, sent, claimed);
        assert.equal(it.writer.pendingItems, 0);
        assert.equal(it.writer.pendingBytes, 0);
        assert.equal(it.clock.pendingTimers, 0);
        const stored = it.stored();
        for (const { id, seqs, side, lane, told } of sent) {
          const refused = new Set(told.refused.map(({ seq }) => seq));
          assert.ok([...refused].every((seq) => seq >= TOO_LONG));
          for (const seq of seqs) assert.ok(refused.has(seq) || stored.has(`${id}/${seq}`), `${id} lost ${seq}`);
          for (const seq of side) assert.ok(stored.has(`${id}#unpositioned/${seq}`));
          const good = seqs.filter((seq) => seq < TOO_LONG);
          const highest = good.reduce((a, b) => (b > a ? b : a), 0n);
          assert.equal(lane.checkpoint?.lastSeq ?? 0n, highest);
        }
      }),
      { numRuns: 60 },
    );
  });
});
