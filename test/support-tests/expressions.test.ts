import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { applyUpdate } from "../support/fake-dynamodb/expression/apply-update.ts";
import { satisfies } from "../support/fake-dynamodb/expression/evaluate-condition.ts";
import { parseCondition } from "../support/fake-dynamodb/expression/parse-condition.ts";
import { parseProjection, project } from "../support/fake-dynamodb/expression/projection.ts";
import { parseUpdate } from "../support/fake-dynamodb/expression/parse-update.ts";
import { Placeholders } from "../support/fake-dynamodb/expression/placeholders.ts";
import { RESERVED_WORDS } from "../support/fake-dynamodb/expression/reserved-words.ts";
import { itemFromSdk, itemToSdk } from "../support/fake-dynamodb/values.ts";
import { serviceError, type Attributes } from "./fixture.ts";

const ITEM: Attributes = {
  n: { N: "5" },
  s: { S: "hello" },
  flag: { BOOL: true },
  nothing: { NULL: true },
  bytes: { B: Uint8Array.of(1, 2, 3) },
  m: { M: { k: { N: "1" }, deep: { M: { x: { S: "y" } } } } },
  l: { L: [{ N: "1" }, { S: "two" }, { M: { k: { N: "3" } } }] },
  tags: { SS: ["a", "b"] },
  "with.dot": { N: "9" },
};
const VALUES: Record<string, AttributeValue> = {
  ":five": { N: "5.0" },
  ":four": { N: "4" },
  ":six": { N: "6" },
  ":hello": { S: "hello" },
  ":he": { S: "he" },
  ":ell": { S: "ell" },
  ":fiveText": { S: "5" },
  ":a": { S: "a" },
  ":two": { S: "two" },
  ":three": { N: "3" },
  ":typeM": { S: "M" },
  ":typeX": { S: "X" },
  ":true": { BOOL: true },
  ":list": { L: [{ S: "new" }] },
  ":tags": { SS: ["b", "a"] },
};
const NAMES = { "#n": "n", "#dot": "with.dot", "#k": "k" };

function placeholders(): Placeholders {
  return new Placeholders(NAMES, VALUES);
}

function holds(text: string, item = ITEM): boolean {
  return satisfies(parseCondition(text, "ConditionExpression", placeholders()), itemFromSdk(item));
}

function updated(text: string, item = ITEM): Attributes {
  return itemToSdk(applyUpdate(itemFromSdk(item), parseUpdate(text, placeholders())));
}

function refuses(run: () => unknown, message: RegExp): void {
  assert.throws(run, serviceError("ValidationException", message));
}

describe("condition expressions", () => {
  const cases: readonly (readonly [string, boolean])[] = [
    ["n = :five", true],
    ["n <> :five", false],
    ["n > :four AND n < :six", true],
    ["n >= :five and n <= :five", true],
    ["n = :fiveText", false],
    ["n < :fiveText", false],
    ["s > :he", true],
    ["n BETWEEN :four AND :six", true],
    ["n BETWEEN :six AND :six", false],
    ["n IN (:four, :five)", true],
    ["n IN (:fiveText)", false],
    ["absent = :five", false],
    ["absent <> :five", true],
    ["absent < :five", false],
    ["attribute_exists(n)", true],
    ["attribute_exists(m.deep.x)", true],
    ["attribute_exists(m.deep.z)", false],
    ["attribute_not_exists(absent)", true],
    ["attribute_type(m, :typeM)", true],
    ["attribute_type(n, :typeM)", false],
    ["begins_with(s, :he)", true],
    ["begins_with(s, :ell)", false],
    ["begins_with(n, :he)", false],
    ["contains(s, :ell)", true],
    ["contains(tags, :a)", true],
    ["contains(l, :two)", true],
    ["contains(l, :five)", false],
    ["tags = :tags", true],
    ["size(s) = :five", true],
    ["size(l) = :three", true],
    ["size(n) = :five", false],
    ["l[2].k = :three", true],
    ["l[2].#k = :three AND #n = :five", true],
    ["#dot > :six", true],
    ["flag = :true", true],
    // AND binds tighter than OR, NOT tighter than AND.
    ["n = :five OR n = :five AND n = :four", true],
    ["(n = :five OR n = :five) AND n = :four", false],
    ["NOT n = :four AND n = :five", true],
    ["NOT (n = :four OR n = :five)", false],
    ["not not n = :five", true],
  ];
  for (const [text, expected] of cases) {
    it(`${text} is ${expected}`, () => assert.equal(holds(text), expected));
  }

  it("sees no attribute in an absent item", () => {
    assert.equal(holds("attribute_not_exists(n) AND NOT n = :five", {}), true);
  });

  const refused: readonly (readonly [string, RegExp])[] = [
    ["", /can not be empty/],
    ["n", /Syntax error; token: "<EOF>"/],
    ["n = = :five", /Syntax error; token: "="/],
    ["n = :five AND", /Syntax error/],
    ["n = :five n = :five", /Syntax error; token: "n"/],
    ["n = 5", /Syntax error; token: "5"/],
    ["n ; :five", /Syntax error; token: ";"/],
    ["(n = :five", /Syntax error/],
    ["((n = :five))", /redundant parentheses/],
    ["n = :nope", /attribute value used in expression is not defined; attribute value: :nope/],
    ["#nope = :five", /attribute name used in the document path is not defined; attribute name: #nope/],
    ["state = :five", /reserved keyword: state/],
    ["m.Cursor = :five", /reserved keyword: Cursor/],
    ["n = n", /first operand must be distinct/],
    ["n < :true", /Incorrect operand type .*operator: <, operand type: BOOL/],
    ["n BETWEEN :six AND :four", /upper bound to be greater than or equal/],
    ["n BETWEEN :four AND :hello", /same data type/],
    ["begins_with(s, :five)", /begins_with, operand type: N/],
    ["begins_with(s)", /number of operands: 1/],
    ["attribute_exists(:five)", /requires a document path/],
    ["attribute_type(n, :typeX)", /Invalid attribute type name found; type: X/],
    ["unknown(n)", /Invalid function name; function name: unknown/],
    ["ATTRIBUTE_EXISTS(n)", /Invalid function name/],
    ["n = if_not_exists(n, :five)", /not allowed/],
    ["if_not_exists(n, :five) = :five", /not allowed in a condition/],
  ];
  for (const [text, message] of refused) {
    it(`refuses "${text}"`, () => refuses(() => holds(text), message));
  }

  it("knows all of AWS's reserved words", () => {
    assert.equal(RESERVED_WORDS.size, 573);
  });
});

describe("update expressions", () => {
  const changes: readonly (readonly [string, Attributes])[] = [
    ["SET n = n + :six", { n: { N: "11" } }],
    ["SET n = :four - n", { n: { N: "-1" } }],
    ["SET fresh = if_not_exists(fresh, :four) + :six", { fresh: { N: "10" } }],
    ["SET fresh = if_not_exists(n, :four)", { fresh: { N: "5" } }],
    ["SET n = s, s = n", { n: { S: "hello" }, s: { N: "5" } }],
    ["set fresh = list_append(if_not_exists(fresh, :list), :list)", { fresh: { L: [{ S: "new" }, { S: "new" }] } }],
    ["SET l[1] = :five", { l: { L: [{ N: "1" }, { N: "5" }, { M: { k: { N: "3" } } }] } }],
    ["SET l[40] = :five", { l: { L: [...(ITEM["l"]?.L ?? []), { N: "5" }] } }],
    ["SET m.#k = m.#k + :four", { m: { M: { k: { N: "5" }, deep: { M: { x: { S: "y" } } } } } }],
    ["SET #dot = :four ADD n :four, fresh :six", { "with.dot": { N: "4" }, n: { N: "9" }, fresh: { N: "6" } }],
    ["REMOVE l[0], l[1] SET n = :four", { l: { L: [{ M: { k: { N: "3" } } }] }, n: { N: "4" } }],
    ["REMOVE m.deep.absent, absent", {}],
  ];
  for (const [text, changed] of changes) {
    it(text, () => assert.deepEqual(updated(text), { ...ITEM, ...changed }));
  }

  it("REMOVE takes attributes away", () => {
    assert.deepEqual(updated("REMOVE s, m.deep", { s: { S: "x" }, m: { M: { deep: { M: {} }, k: { N: "1" } } } }), {
      m: { M: { k: { N: "1" } } },
    });
  });

  const refused: readonly (readonly [string, RegExp])[] = [
    ["SET n = :five,", /Syntax error/],
    ["SET n :five", /Syntax error; token: ":five"/],
    ["n = :five", /Syntax error; token: "n"/],
    ["SET n = :five + :five + :five", /Syntax error; token: "\+"/],
    ["SET n = :five SET s = :five", /"SET" section can only be used once/],
    ["SET n = :five, n = :four", /paths overlap.*path one: \[n\], path two: \[n\]/],
    ["SET m = :five REMOVE m.deep", /paths overlap/],
    ["SET n = n + :hello", /operator or function: \+, operand type: S/],
    ["SET n = s + :five", /operand in the update expression has an incorrect data type/],
    ["ADD s :five", /incorrect data type/],
    ["ADD n :hello", /Incorrect operand type.*ADD, operand type: S/],
    ["SET n = list_append(n, :list)", /incorrect data type/],
    ["SET n = absent", /refers to an attribute that does not exist/],
    ["SET n = absent + :five", /refers to an attribute that does not exist/],
    ["SET absent.k = :five", /document path .* invalid for update/],
    ["SET s.k = :five", /document path .* invalid for update/],
    ["SET m[0] = :five", /document path .* invalid for update/],
    ["SET n = size(s)", /Invalid function name/],
    ["SET status = :five", /reserved keyword: status/],
  ];
  for (const [text, message] of refused) {
    it(`refuses "${text}"`, () => refuses(() => updated(text), message));
  }

  it("says plainly what it does not support", () => {
    assert.throws(() => updated("DELETE tags :tags"), { name: "UnsupportedByFake" });
  });
});

describe("projection expressions", () => {
  it("keeps only what is named and closes the gaps of lists", () => {
    const paths = parseProjection("#n, m.deep, l[2], l[0], absent.k", placeholders());
    assert.deepEqual(itemToSdk(project(itemFromSdk(ITEM), paths)), {
      n: { N: "5" },
      m: { M: { deep: { M: { x: { S: "y" } } } } },
      l: { L: [{ N: "1" }, { M: { k: { N: "3" } } }] },
    });
  });

  it("refuses overlapping paths", () => {
    refuses(() => parseProjection("m, m.deep", placeholders()), /paths overlap/);
  });
});

describe("placeholders", () => {
  const parse = (text: string, given: Placeholders): void => {
    parseCondition(text, "FilterExpression", given);
    given.assertAllUsed(true);
  };
  it("must all be used", () => {
    refuses(
      () => parse("n = :a", new Placeholders(undefined, { ":a": { N: "1" }, ":b": { N: "1" } })),
      /ExpressionAttributeValues unused in expressions: keys: \{:b\}/,
    );
    refuses(
      () => parse("n = :a", new Placeholders({ "#b": "b" }, { ":a": { N: "1" } })),
      /ExpressionAttributeNames unused in expressions: keys: \{#b\}/,
    );
  });

  it("must be well formed, and not an empty map", () => {
    refuses(() => new Placeholders({}, undefined), /ExpressionAttributeNames must not be empty/);
    refuses(() => new Placeholders({ b: "b" }, undefined), /invalid key.*"b"/);
    refuses(() => new Placeholders(undefined, { ":a-b": { N: "1" } }), /invalid key/);
    refuses(() => new Placeholders(undefined, { ":a": { N: "one" } }), /cannot be converted to a numeric value: one/);
  });

  it("name the expression that lacks them", () => {
    refuses(() => parse("n = :nope", new Placeholders(undefined, undefined)), /^Invalid FilterExpression: /);
  });
});
