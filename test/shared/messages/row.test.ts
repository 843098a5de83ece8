import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkConnectionId } from "../../../shared/connection/item.ts";
import { partsPartition, unpositionedPartition, unpositionedSeq } from "../../../shared/messages/row.ts";

const MOST_PER_HOLDING = 10n ** 12n - 1n;
const epoch = fc.bigInt({ min: 1n, max: 10n ** 20n });
const n = fc.bigInt({ min: 1n, max: MOST_PER_HOLDING });
const seq = fc.bigInt({ min: 0n, max: 10n ** 38n - 1n });
const id = fc
  .string({ unit: "binary", minLength: 1, maxLength: 1024 })
  .filter((text) => checkConnectionId(text) === undefined);

describe("keys of messages", () => {
  it("the n-th message of an epoch has its place", () => {
    assert.equal(unpositionedSeq(1_700_000_001n, 1n), 1_700_000_001_000_000_000_001n);
  });

  it("two owners never write the same key, and a later owner's keys lie beyond all of an earlier one's", () => {
    fc.assert(
      fc.property(epoch, epoch, n, n, (a, b, m, k) => {
        if (a === b) return;
        const [earlier, later] = a < b ? [a, b] : [b, a];
        assert.ok(unpositionedSeq(earlier, m) < unpositionedSeq(later, k));
      }),
    );
  });

  it("keys rise with the messages of one owner and stay within what DynamoDB keeps exactly", () => {
    fc.assert(
      fc.property(epoch, fc.bigInt({ min: 1n, max: MOST_PER_HOLDING - 1n }), (e, m) => {
        assert.ok(unpositionedSeq(e, m) < unpositionedSeq(e, m + 1n));
        assert.ok(unpositionedSeq(e, m).toString().length <= 38);
      }),
    );
  });

  it("partitions derived from an id are no id, differ from each other, and fit into a key", () => {
    fc.assert(
      fc.property(id, id, seq, seq, (a, b, s, t) => {
        const partitions = [a, unpositionedPartition(a), partsPartition(a, s)];
        assert.equal(new Set(partitions).size, 3);
        for (const derived of partitions.slice(1)) {
          assert.notEqual(checkConnectionId(derived), undefined);
          assert.ok(Buffer.byteLength(derived) <= 2048);
        }
        if (a !== b || s !== t) assert.notEqual(partsPartition(a, s), partsPartition(b, t));
        if (a !== b) assert.notEqual(unpositionedPartition(a), unpositionedPartition(b));
      }),
    );
  });
});
