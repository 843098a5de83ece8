import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  checkConnectionId,
  leaseOf,
  MalformedItemError,
  parseConnectionItem,
  type RawItem,
} from "../../../shared/connection/item.ts";

const { value: attribute } = fc.letrec<{ value: AttributeValue; list: AttributeValue[]; map: RawItem }>((tie) => ({
  list: fc.array(tie("value"), { maxLength: 3 }),
  map: fc.dictionary(fc.oneof(fc.string(), fc.constantFrom("position", "pointer", "kind")), tie("value"), {
    maxKeys: 4,
  }),
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.string({ unit: "binary" }).map((S) => ({ S })),
    fc.constantFrom("STARTED", "STOPPED", "wss://feed.test/", "sequence", "/seq").map((S) => ({ S })),
    fc
      .oneof(fc.bigInt().map(String), fc.double().map(String), fc.string(), fc.constant("9".repeat(39)))
      .map((N) => ({ N })),
    fc.uint8Array().map((B) => ({ B })),
    fc.boolean().map((BOOL) => ({ BOOL })),
    fc.constant({ NULL: true as const }),
    fc.array(fc.string()).map((SS) => ({ SS })),
    fc.array(fc.bigInt().map(String)).map((NS) => ({ NS })),
    fc.array(fc.uint8Array()).map((BS) => ({ BS })),
    tie("list").map((L) => ({ L })),
    tie("map").map((M) => ({ M })),
  ),
}));
const NAMES = [
  "connection_id",
  "desired_state",
  "ws_url",
  "upstream",
  "lease_owner",
  "lease_expires_at_ms",
  "lease_epoch",
  "last_seq",
  "last_cursor",
  "last_error",
  "failure_count",
] as const;
const anyItem: fc.Arbitrary<RawItem> = fc.oneof(
  fc.dictionary(fc.constantFrom(...NAMES), attribute),
  fc.dictionary(fc.string(), attribute),
);

const VALID: RawItem = {
  connection_id: { S: "c" },
  desired_state: { S: "STARTED" },
  ws_url: { S: "wss://feed.test/stream?cursor={cursor}" },
};
/** One part broken at a time, so that what is reported can be told. */
const nearlyValid = fc
  .tuple(fc.constantFrom(...NAMES), attribute)
  .map(([name, value]) => ({ name, item: { ...VALID, [name]: value } }));

const problemsOf = (item: RawItem): readonly string[] => {
  try {
    parseConnectionItem(item);
    return [];
  } catch (error) {
    assert.ok(error instanceof MalformedItemError, `threw ${String(error)}`);
    return error.problems;
  }
};

describe("parseConnectionItem", () => {
  it("takes any attributes apart or says which field is wrong, and never throws anything else", () => {
    fc.assert(
      fc.property(anyItem, (item) => {
        for (const problem of problemsOf(item)) {
          assert.ok(
            NAMES.some((name) => problem.startsWith(name)),
            problem,
          );
        }
      }),
      { numRuns: 3000 },
    );
  });

  it("blames the field that is broken and no other", () => {
    fc.assert(
      fc.property(nearlyValid, ({ name, item }) => {
        for (const problem of problemsOf(item)) assert.ok(problem.startsWith(name), `${name} is broken: ${problem}`);
      }),
      { numRuns: 3000 },
    );
  });

  it("gives what it parsed in the promised types", () => {
    fc.assert(
      fc.property(nearlyValid, ({ item }) => {
        if (problemsOf(item).length > 0) return;
        const parsed = parseConnectionItem(item);
        assert.ok(Number.isSafeInteger(parsed.failureCount) && parsed.failureCount >= 0);
        assert.ok(parsed.lastSeq === undefined || (parsed.lastSeq >= 0n && parsed.lastSeq < 10n ** 38n));
        assert.equal(parsed.kind, parsed.upstream.position?.kind === "sequence" ? "positioned" : "unpositioned");
      }),
      { numRuns: 2000 },
    );
  });

  it("parses a full item", () => {
    const position = { pointer: "/payload/seq", kind: "sequence", initial: "0" };
    const item: RawItem = {
      ...VALID,
      upstream: {
        M: { position: { M: { pointer: { S: position.pointer }, kind: { S: "sequence" }, initial: { S: "0" } } } },
      },
      last_seq: { N: "99999999999999999999999999999999999999" },
      last_cursor: { S: "" },
      failure_count: { N: "3" },
      lease_owner: { S: "somebody" },
    };
    assert.deepEqual(parseConnectionItem(item), {
      connectionId: "c",
      desiredState: "STARTED",
      wsUrl: "wss://feed.test/stream?cursor={cursor}",
      upstream: { position },
      kind: "positioned",
      failureCount: 3,
      lastSeq: 10n ** 38n - 1n,
      lastCursor: "",
    });
  });

  it("reports all problems together", () => {
    const problems = problemsOf({ connection_id: { S: "" }, last_seq: { N: "-1" }, upstream: { S: "x" } });
    assert.deepEqual(
      problems.map((problem) => problem.split(/[ .:]/)[0]),
      ["connection_id", "desired_state", "ws_url", "upstream", "last_seq"],
    );
  });

  for (const [text, lastSeq] of [
    ["0", 0n],
    ["9007199254740993", 9_007_199_254_740_993n],
    ["1".repeat(38), BigInt("1".repeat(38))],
  ] as const) {
    it(`last_seq ${text} is kept exactly`, () => {
      assert.equal(parseConnectionItem({ ...VALID, last_seq: { N: text } }).lastSeq, lastSeq);
    });
  }

  for (const text of ["-1", "1.5", "1e3", "007", "", " 1", "9".repeat(39), "NaN"]) {
    it(`last_seq ${JSON.stringify(text)} is refused`, () => {
      assert.match(problemsOf({ ...VALID, last_seq: { N: text } }).join(), /^last_seq must be a non-negative integer/);
    });
  }

  for (const text of ["-3", "1.5", "x", "1e400", "99999999999999999999"]) {
    it(`failure_count ${text} counts as none: it is for people and must not stop a connection`, () => {
      assert.equal(parseConnectionItem({ ...VALID, failure_count: { N: text } }).failureCount, 0);
    });
  }
});

describe("checkConnectionId", () => {
  for (const id of ["c", "x".repeat(1024), "é".repeat(512), "a b/c:d", "연결-7", "😀"]) {
    it(`accepts ${JSON.stringify(id.slice(0, 20))}`, () => assert.equal(checkConnectionId(id), undefined));
  }
  for (const id of [
    "",
    "x".repeat(1025),
    "é".repeat(513),
    "a#b",
    "a\u0000b",
    "a\nb",
    "\u007f",
    "\ud800",
    7,
    null,
    undefined,
  ]) {
    it(`refuses ${JSON.stringify(id ?? null).slice(0, 20)}`, () => {
      assert.match(checkConnectionId(id) ?? "accepted", /^connection_id must /);
    });
  }
});

describe("leaseOf", () => {
  it("judges the lease of any item, and never throws", () => {
    fc.assert(
      fc.property(anyItem, (item) => {
        const lease = leaseOf(item);
        assert.ok(lease.epoch === undefined || lease.epoch >= 0n);
        assert.equal(lease.owner, item["lease_owner"]?.S);
        assert.equal(lease.desiredState, item["desired_state"]?.S);
        assert.equal(typeof lease.expiresAtMs, item["lease_expires_at_ms"]?.N === undefined ? "undefined" : "number");
      }),
      { numRuns: 2000 },
    );
  });

  it("reads what is there", () => {
    const lease = {
      desired_state: { S: "STOPPED" },
      lease_owner: { S: "task" },
      lease_expires_at_ms: { N: "1700000000000" },
      lease_epoch: { N: "9007199254740993" },
    };
    assert.deepEqual(leaseOf(lease), {
      desiredState: "STOPPED",
      owner: "task",
      expiresAtMs: 1_700_000_000_000,
      epoch: 9_007_199_254_740_993n,
    });
    assert.deepEqual(leaseOf({}), {
      desiredState: undefined,
      owner: undefined,
      expiresAtMs: undefined,
      epoch: undefined,
    });
  });
});
