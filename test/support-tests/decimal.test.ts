import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  addDecimals,
  compareDecimals,
  formatDecimal,
  negated,
  parseDecimal,
} from "../support/fake-dynamodb/decimal.ts";
import { serviceError } from "./fixture.ts";

const canonical = (text: string): string => formatDecimal(parseDecimal(text));
const sum = (a: string, b: string): string => formatDecimal(addDecimals(parseDecimal(a), parseDecimal(b)));
const integers = fc.bigInt({ min: -(10n ** 37n), max: 10n ** 37n });

describe("decimals", () => {
  const forms: readonly (readonly [string, string])[] = [
    ["007.500", "7.5"],
    ["-0", "0"],
    ["+5", "5"],
    [".5", "0.5"],
    ["5.", "5"],
    ["1E+3", "1000"],
    ["-12.5e-3", "-0.0125"],
    ["12345678901234567890123456789012345678", "12345678901234567890123456789012345678"],
    ["1e125", `1${"0".repeat(125)}`],
    ["1e-130", `0.${"0".repeat(129)}1`],
  ];
  for (const [text, expected] of forms) {
    it(`${text} is ${expected.slice(0, 40)}`, () => assert.equal(canonical(text), expected));
  }

  for (const text of ["", "abc", " 1", "1 ", "0x10", "1e2.5", ".", "e5", "--1", "NaN", "Infinity"]) {
    it(`refuses "${text}"`, () => {
      assert.throws(() => parseDecimal(text), serviceError("ValidationException", /cannot be converted/));
    });
  }

  it("refuses what DynamoDB cannot hold", () => {
    const tooLong = "123456789012345678901234567890123456789";
    assert.throws(() => parseDecimal(tooLong), serviceError("ValidationException", /more than 38 significant digits/));
    assert.throws(() => parseDecimal("1e126"), serviceError("ValidationException", /Number overflow/));
    assert.throws(() => parseDecimal("1e-131"), serviceError("ValidationException", /Number underflow/));
    assert.throws(() => sum("1e100", "1"), serviceError("ValidationException", /more than 38 significant digits/));
  });

  it("is exact where a float is not", () => {
    assert.equal(sum("9007199254740993", "1"), "9007199254740994");
    assert.equal(sum("0.1", "0.2"), "0.3");
    assert.equal(compareDecimals(parseDecimal("9007199254740993"), parseDecimal("9007199254740992")), 1);
    assert.equal(compareDecimals(parseDecimal("-2"), parseDecimal("1e-130")), -1);
    assert.equal(compareDecimals(parseDecimal("1.50"), parseDecimal("15e-1")), 0);
  });

  it("agrees with BigInt on integers", () => {
    fc.assert(
      fc.property(integers, integers, (a, b) => {
        assert.equal(sum(String(a), String(b)), String(a + b));
        const order = compareDecimals(parseDecimal(String(a)), parseDecimal(String(b)));
        assert.equal(order, a < b ? -1 : a > b ? 1 : 0);
      }),
    );
  });

  it("keeps its value through any scaling", () => {
    fc.assert(
      fc.property(integers, fc.integer({ min: -80, max: 80 }), (a, exponent) => {
        const value = parseDecimal(`${a}e${exponent}`);
        assert.deepEqual(parseDecimal(formatDecimal(value)), value);
        assert.equal(formatDecimal(addDecimals(value, negated(value))), "0");
      }),
    );
  });
});
