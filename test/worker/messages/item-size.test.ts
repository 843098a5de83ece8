import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { MessageRow } from "../../../shared/messages/row.ts";
import { Entry, headWrite, partWrite, wholeWrite } from "../../../worker/messages/entry.ts";
import { itemOf } from "../../../worker/messages/items.ts";
import { MessageLane } from "../../../worker/messages/lane.ts";
import { PART_BYTES } from "../../../worker/messages/limits.ts";
import { silentLogger } from "../../../shared/logger.ts";
import { itemBytes, itemFromSdk } from "../../support/fake-dynamodb/values.ts";
import { row, Told } from "./support.ts";

const ignore = (): void => undefined;
const lane = new MessageLane({ logger: silentLogger, accept: ignore, hurry: ignore }, new Told());
const sizeOf = (item: Parameters<typeof itemFromSdk>[0]): number => itemBytes(itemFromSdk(item));

describe("the size of an item", () => {
  it("is never more than estimated, and not much less", () => {
    const rows: fc.Arbitrary<MessageRow> = fc
      .record({
        connectionId: fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }),
        seq: fc.bigInt({ min: 0n, max: 10n ** 38n - 1n }),
        payload: fc.oneof(fc.string({ unit: "binary", maxLength: 500 }), fc.uint8Array({ maxLength: 500 })),
        receivedAtMs: fc.nat({ max: 4_000_000_000_000 }),
        epoch: fc.bigInt({ min: 0n, max: 10n ** 12n }),
        cursor: fc.option(fc.string({ unit: "grapheme", maxLength: 50 }), { nil: undefined }),
      })
      .map(({ cursor, ...rest }) => (cursor === undefined ? rest : { ...rest, cursor }));
    fc.assert(
      fc.property(rows, (one) => {
        const write = wholeWrite(new Entry(lane, one, true, 1));
        const size = sizeOf(itemOf(write, 60));
        assert.ok(size <= write.bytes && write.bytes <= size + 100, `${size} is estimated as ${write.bytes}`);
      }),
    );
  });

  it("of a part and of the head is never more than estimated", () => {
    const entry = new Entry(lane, row("some-connection", 10n ** 37n, { payload: "ü".repeat(400_000) }), true, 1);
    assert.ok(entry.large !== undefined);
    while (!entry.large.complete) {
      const write = partWrite(entry, entry.large.next());
      assert.ok(sizeOf(itemOf(write, 60)) <= write.bytes && write.bytes < PART_BYTES + 300);
    }
    const head = headWrite(entry);
    assert.ok(sizeOf(itemOf(head, 60)) <= head.bytes && head.bytes < 500);
  });
});
