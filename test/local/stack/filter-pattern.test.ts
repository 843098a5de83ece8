import assert from "node:assert/strict";
import path from "node:path";
import { describe, it } from "node:test";
import { readServerlessFile } from "../../../local/serverless-file.ts";
import { compileAlternatives, compilePattern } from "../../../local/triggers/filter-pattern.ts";

const projectRoot = path.join(import.meta.dirname, "../../..");

type Attributes = Record<string, { S?: string; N?: string }>;

function record(eventName: string, oldImage: Attributes | undefined, newImage: Attributes | undefined): object {
  return {
    eventName,
    dynamodb: {
      Keys: { connection_id: { S: "c1" } },
      ...(oldImage && { OldImage: oldImage }),
      ...(newImage && { NewImage: newImage }),
      SequenceNumber: "1",
    },
  };
}

const free = { connection_id: { S: "c1" }, desired_state: { S: "STARTED" }, lease_expires_at_ms: { N: "0" } };
const owned = {
  ...free,
  lease_owner: { S: "task" },
  lease_expires_at_ms: { N: "1790000000000" },
  lease_epoch: { N: "7" },
};

describe("the stream filter of serverless.yml", () => {
  const trigger = readServerlessFile({ projectRoot })
    .functions.find((one) => one.name === "desired-state")
    ?.triggers.find((one) => one.kind === "stream");
  assert.ok(trigger);
  const matches = compileAlternatives(trigger.filterPatterns, { at: "filterPatterns", numbersAreText: true });

  const cases: [what: string, expected: boolean, event: object][] = [
    ["a start", true, record("INSERT", undefined, free)],
    ["a start after a stop", true, record("MODIFY", { ...free, desired_state: { S: "STOPPED" } }, free)],
    ["a graceful release", true, record("MODIFY", owned, { ...free, lease_epoch: { N: "7" } })],
    [
      "an item without an expiry",
      true,
      record("INSERT", undefined, { connection_id: { S: "c1" }, desired_state: { S: "STARTED" } }),
    ],
    [
      "an expiry that is not a number",
      true,
      record("INSERT", undefined, { ...free, lease_expires_at_ms: { S: "soon" } }),
    ],
    ["a heartbeat", false, record("MODIFY", owned, { ...owned, lease_expires_at_ms: { N: "1790000005000" } })],
    ["an acquire", false, record("MODIFY", free, owned)],
    ["a stop while owned", false, record("MODIFY", owned, { ...owned, desired_state: { S: "STOPPED" } })],
    ["a release of a stopped connection", false, record("MODIFY", owned, { ...free, desired_state: { S: "STOPPED" } })],
    ["a park", false, record("MODIFY", owned, { ...free, lease_expires_at_ms: { N: "1790000900000" } })],
    ["a delete", false, record("REMOVE", free, undefined)],
  ];
  for (const [what, expected, event] of cases) {
    it(`${expected ? "lets through" : "drops"} ${what}`, () => assert.equal(matches(event), expected));
  }
});

describe("patterns", () => {
  const matches = (pattern: unknown, event: unknown): boolean => compilePattern(pattern, { at: "pattern" })(event);

  it("need every key and one alternative of each", () => {
    assert.equal(matches({ a: ["x", "y"], b: [1] }, { a: "y", b: 1 }), true);
    assert.equal(matches({ a: ["x", "y"], b: [1] }, { a: "y", b: 2 }), false);
    assert.equal(matches({ a: ["x"] }, {}), false);
  });

  it("do not confuse types", () => {
    assert.equal(matches({ a: ["1"] }, { a: 1 }), false);
    assert.equal(matches({ a: [null] }, { a: null }), true);
    assert.equal(matches({ a: [null] }, {}), false);
    assert.equal(matches({ a: [false] }, { a: null }), false);
  });

  it("look at leaves only", () => {
    assert.equal(matches({ a: [{ exists: true }] }, { a: { b: 1 } }), false);
    assert.equal(matches({ a: [{ exists: false }] }, { a: { b: 1 } }), true);
    assert.equal(matches({ a: { b: [{ exists: false }] } }, { a: { b: 1 } }), false);
    assert.equal(matches({ a: { b: [{ exists: false }] } }, {}), true);
  });

  it("compare text by prefix, suffix and without case", () => {
    assert.equal(matches({ a: [{ prefix: "ab" }] }, { a: "abc" }), true);
    assert.equal(matches({ a: [{ prefix: { "equals-ignore-case": "AB" } }] }, { a: "abc" }), true);
    assert.equal(matches({ a: [{ suffix: "bc" }] }, { a: "abd" }), false);
    assert.equal(matches({ a: [{ "equals-ignore-case": "ABC" }] }, { a: "abc" }), true);
    assert.equal(matches({ a: [{ prefix: "1" }] }, { a: 12 }), false);
  });

  it("exclude", () => {
    assert.equal(matches({ a: [{ "anything-but": ["x", "y"] }] }, { a: "z" }), true);
    assert.equal(matches({ a: [{ "anything-but": ["x", "y"] }] }, { a: "y" }), false);
    assert.equal(matches({ a: [{ "anything-but": { prefix: "x" } }] }, { a: "xy" }), false);
    assert.equal(matches({ a: [{ "anything-but": "x" }] }, {}), false, "an absent value is no value");
  });

  it("compare numbers", () => {
    assert.equal(matches({ a: [{ numeric: [">", 1, "<=", 5] }] }, { a: 5 }), true);
    assert.equal(matches({ a: [{ numeric: [">", 1, "<=", 5] }] }, { a: 1 }), false);
    assert.equal(matches({ a: [{ numeric: ["=", 5] }] }, { a: "5" }), false);
  });

  it("are content with one element of an array", () => {
    assert.equal(matches({ a: ["x"] }, { a: ["w", "x"] }), true);
    assert.equal(matches({ a: [{ exists: false }] }, { a: [] }), true);
    assert.equal(matches({ a: { b: [1], c: [2] } }, { a: [{ b: 1, c: 2 }, { b: 3 }] }), true);
    assert.equal(matches({ a: { b: [1], c: [2] } }, { a: [{ b: 1 }, { c: 2 }] }), false, "both keys of one element");
  });

  it("offer alternatives by $or", () => {
    const pattern = { $or: [{ a: [1] }, { b: [2] }] };
    assert.equal(matches(pattern, { b: 2 }), true);
    assert.equal(matches(pattern, { a: 2, b: 1 }), false);
  });

  it("are refused when an operator is unknown, naming it and its place", () => {
    const refused = (pattern: unknown, message: RegExp, numbersAreText = false): void => {
      assert.throws(() => compilePattern(pattern, { at: "p", numbersAreText }), message);
    };
    refused({ a: { b: [{ cidr: "10.0.0.0/24" }] } }, /p\.a\.b\.0: the operator "cidr" is not supported/);
    refused({ a: [{ "anything-but": { wildcard: "*" } }] }, /"wildcard" is not supported/);
    refused({ a: [{ prefix: "x", suffix: "y" }] }, /exactly one operator/);
    refused({ a: [] }, /p\.a: an empty list would match nothing/);
    refused({ a: "x" }, /p\.a: must be a list/);
    refused({}, /must not be empty/);
    refused({ a: [{ numeric: ["~", 1] }] }, /the operator one of/);
    refused({ dynamodb: { NewImage: { n: { N: [0] } } } }, /numbers as text/, true);
    refused({ dynamodb: { NewImage: { n: { N: [{ numeric: ["=", 0] }] } } } }, /numbers as text/, true);
  });
});
