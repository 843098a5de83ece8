import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkConnectionId } from "../../../shared/connection/item.ts";
import { encodeHint, HINT_REASONS, parseHint, type Hint } from "../../../shared/hints/hint.ts";

const time = fc.nat({ max: Number.MAX_SAFE_INTEGER });
const id = fc
  .oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 1024 }),
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 300 }),
    // What JSON writes longer than it is.
    fc
      .tuple(fc.constantFrom("\\", '"', "\u0001", "\n", "\u2028", "\ud800"), fc.integer({ min: 1, max: 1024 }))
      .map(([character, length]) => character.repeat(length)),
  )
  .filter((text) => checkConnectionId(text) === undefined);
const hint: fc.Arbitrary<Hint> = fc.record(
  { connectionId: id, reason: fc.constantFrom(...HINT_REASONS), hintedAtMs: time, freeSinceMs: time },
  { requiredKeys: ["connectionId", "reason", "hintedAtMs"], noNullPrototype: true },
);
const problemOf = (body: string | undefined): string => {
  const parsed = parseHint(body);
  return "problem" in parsed ? parsed.problem : `parsed: ${JSON.stringify(parsed)}`;
};
const VALID = { v: 1, connection_id: "c", reason: "orphaned", hinted_at_ms: 1 };

describe("hints", () => {
  it("every hint about a possible connection survives the queue", () => {
    fc.assert(
      fc.property(hint, (given) => assert.deepEqual(parseHint(encodeHint(given)), given)),
      { numRuns: 2000 },
    );
  });

  it("a body of any text or any JSON is a hint or a problem, and never throws", () => {
    const isEither = (body: string): void => {
      const parsed = parseHint(body);
      assert.equal("problem" in parsed ? typeof parsed.problem : typeof parsed.connectionId, "string");
    };
    fc.assert(fc.property(fc.string({ unit: "binary" }), isEither), { numRuns: 1000 });
    fc.assert(fc.property(fc.json(), isEither), { numRuns: 1000 });
    const nearly = fc.record(
      {
        v: fc.oneof(fc.constant(1), fc.jsonValue()),
        connection_id: fc.oneof(fc.string(), fc.jsonValue()),
        reason: fc.oneof(fc.constantFrom(...HINT_REASONS), fc.jsonValue()),
        hinted_at_ms: fc.oneof(fc.nat(), fc.jsonValue()),
        free_since_ms: fc.oneof(fc.nat(), fc.jsonValue()),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(nearly, (value) => isEither(JSON.stringify(value))),
      { numRuns: 2000 },
    );
  });

  for (const [field, change] of [
    ["v", { v: 2 }],
    ["v", { v: "1" }],
    ["v", { v: undefined }],
    ["connection_id", { connection_id: "" }],
    ["connection_id", { connection_id: 7 }],
    ["connection_id", { connection_id: "a#b" }],
    ["connection_id", { connection_id: "x".repeat(1025) }],
    ["connection_id", { connection_id: undefined }],
    ["reason", { reason: "because" }],
    ["reason", { reason: undefined }],
    ["hinted_at_ms", { hinted_at_ms: -1 }],
    ["hinted_at_ms", { hinted_at_ms: 1.5 }],
    ["hinted_at_ms", { hinted_at_ms: "1" }],
    ["hinted_at_ms", { hinted_at_ms: undefined }],
    ["free_since_ms", { free_since_ms: -1 }],
    ["free_since_ms", { free_since_ms: null }],
  ] as const) {
    it(`names ${field} in ${JSON.stringify(change).slice(0, 60)}`, () => {
      const problem = problemOf(JSON.stringify({ ...VALID, ...change }));
      assert.ok(problem.startsWith(`${field}: `), problem);
    });
  }

  for (const body of [undefined, "", "hint", "{", "null", "[]", "7", '"c"', "[".repeat(4000), "x".repeat(5000)]) {
    it(`refuses the body ${String(body).slice(0, 20)}`, () => {
      assert.ok(!problemOf(body).startsWith("parsed"));
    });
  }

  it("allows fields it does not know, so that newer producers stay readable", () => {
    const parsed = parseHint(JSON.stringify({ ...VALID, priority: 9 }));
    assert.deepEqual(parsed, { connectionId: "c", reason: "orphaned", hintedAtMs: 1 });
  });

  it("refuses a hint inside a body that is longer than any hint needs", () => {
    assert.match(problemOf(JSON.stringify({ ...VALID, padding: "x".repeat(5000) })), /at most \d+ characters/);
  });

  it("is not fooled by inherited names", () => {
    const body = '{"__proto__":{"v":1,"connection_id":"c","reason":"started","hinted_at_ms":1}}';
    assert.ok(!problemOf(body).startsWith("parsed"));
  });
});
