import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import fc from "fast-check";
import { LargePayload } from "../../../worker/messages/large-payload.ts";
import { PART_BYTES } from "../../../worker/messages/limits.ts";

function partsOf(payload: string | Uint8Array): Uint8Array[] {
  const large = new LargePayload(payload);
  const parts: Uint8Array[] = [];
  while (!large.complete) parts.push(large.bytes(large.next()));
  const bytes = Buffer.from(typeof payload === "string" ? Buffer.from(payload) : payload);
  assert.equal(Buffer.compare(Buffer.concat(parts), bytes), 0, "the parts are not the payload");
  assert.equal(large.sha256(), createHash("sha256").update(bytes).digest("hex"));
  assert.equal(large.count, parts.length);
  parts.forEach((part, i) => {
    assert.ok(part.length <= PART_BYTES && part.length > PART_BYTES - 4 - (i === parts.length - 1 ? PART_BYTES : 0));
    assert.equal(Buffer.compare(large.bytes(i + 1), part), 0, "a part is not the same when it is asked for again");
  });
  return parts;
}

describe("a payload in parts", () => {
  it("cuts binary into views of the original bytes", () => {
    const payload = new Uint8Array(3 * PART_BYTES + 1).map((_, i) => i % 251);
    const parts = partsOf(payload);
    assert.equal(parts.length, 4);
    for (const part of parts) assert.equal(part.buffer, payload.buffer);
  });

  it("ends exactly with the last full part", () => {
    assert.equal(partsOf(new Uint8Array(2 * PART_BYTES)).length, 2);
    assert.equal(partsOf("x".repeat(2 * PART_BYTES)).length, 2);
  });

  it("cuts text of one to four bytes a character at every offset of the boundary", () => {
    for (const character of ["é", "€", "😀"]) {
      for (let shift = 0; shift < 5; shift++) {
        partsOf("x".repeat(PART_BYTES - shift) + character.repeat(5) + "x".repeat(PART_BYTES - 3) + character);
      }
    }
  });

  it("keeps any mix of characters whole", () => {
    const unit = fc.constantFrom("a", "ß", "漢", "🂡", "\u0000");
    const run = fc.tuple(unit, fc.integer({ min: 1, max: 200_000 })).map(([text, n]) => text.repeat(n));
    fc.assert(
      fc.property(fc.array(run, { minLength: 1, maxLength: 8 }), (runs) => {
        partsOf(runs.join(""));
      }),
      { numRuns: 25 },
    );
  });
});
