import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { PositionReader } from "../../worker/connection/position.ts";
import { anyDocument, pathsOf, pointerOf, written, type Document } from "./support/documents.ts";

const MAX_POSITION = 10n ** 38n - 1n;

/** Numerator and denominator of a number as it stands: nothing is rounded. */
function exactValue(source: string): { numerator: bigint; denominator: bigint } | undefined {
  const {
    sign,
    whole,
    fraction = "",
    exponent = "0",
  } = /^(?<sign>-?)(?<whole>\d+)(?:\.(?<fraction>\d+))?(?:[eE](?<exponent>[+-]?\d+))?$/.exec(source)?.groups ?? {};
  if (whole === undefined) throw new Error(`not a number: ${source}`);
  const numerator = BigInt(`${sign ?? ""}${whole}${fraction}`);
  const shift = Number(exponent) - fraction.length;
  if (numerator === 0n) return { numerator, denominator: 1n };
  if (Math.abs(shift) > 1000) return undefined;
  return shift >= 0
    ? { numerator: numerator * 10n ** BigInt(shift), denominator: 1n }
    : { numerator, denominator: 10n ** BigInt(-shift) };
}

/** The integer that a value of a message is, or undefined where it is none that a key can hold. */
function integerAt(at: Document): bigint | undefined {
  if (at.kind === "text") return /^(0|[1-9]\d{0,37})$/.test(at.value) ? BigInt(at.value) : undefined;
  if (at.kind !== "number") return undefined;
  const exact = exactValue(at.source);
  if (exact === undefined || exact.numerator % exact.denominator !== 0n) return undefined;
  const value = exact.numerator / exact.denominator;
  return value >= 0n && value <= MAX_POSITION ? value : undefined;
}

/** A document and one of the places in it. */
const place = anyDocument.chain((document) =>
  fc.constantFrom(...pathsOf(document)).map((found) => ({ text: written(document), ...found })),
);

const numberAt = (source: string) => {
  const at: Document = { kind: "number", source };
  return [{ text: `{"seq":${source}}`, path: ["seq"], at }] as [{ text: string; path: string[]; at: Document }];
};

describe("the position of a message of any shape", () => {
  it("is exactly the integer that stands there, or nothing", () =>
    fc.assert(
      fc.property(place, ({ text, path, at }) => {
        const found = new PositionReader(pointerOf(path)).sequence(text);
        if (found !== undefined) assert.equal(found, integerAt(at), text);
        // An integer that is written plainly is never overlooked.
        if (at.kind !== "number" || /^\d+$/.test(at.source)) assert.equal(found, integerAt(at), text);
      }),
      {
        numRuns: 8000,
        examples: ["1700000000000000.1", "1.00000000000000000000001", "9007199254740991.4"].map(numberAt),
      },
    ));

  it("as a cursor is the text that stands there", () =>
    fc.assert(
      fc.property(place, ({ text, path, at }) => {
        const found = new PositionReader(pointerOf(path)).cursor(text);
        if (at.kind === "text") assert.equal(found, at.value.isWellFormed() ? at.value : undefined);
        else if (at.kind === "number") assert.equal(found, at.source);
        else assert.equal(found, undefined);
      }),
      { numRuns: 4000 },
    ));

  it("is nothing where the path leads nowhere, and in whatever is no JSON", () => {
    const path = fc.array(fc.oneof(fc.constantFrom("__proto__", "length", "0", "seq", "toString"), fc.string()), {
      maxLength: 3,
    });
    const nothing = (text: string, where: readonly string[]): void => {
      const reader = new PositionReader(pointerOf(where));
      assert.deepEqual([reader.sequence(text), reader.cursor(text)], [undefined, undefined], text);
    };
    fc.assert(
      fc.property(anyDocument, path, (document, where) => {
        const leadsTo = pathsOf(document).find((found) => isDeepStrictEqual(found.path, where))?.at.kind;
        if (leadsTo !== "number" && leadsTo !== "text") nothing(written(document), where);
      }),
      { numRuns: 3000 },
    );
    fc.assert(
      fc.property(fc.string({ unit: "binary" }).filter(isNoJson), path, (text, where) => nothing(text, where)),
      { numRuns: 2000 },
    );
  });

  it("does not depend on what other messages called their members", () => {
    JSON.parse('{"x":1,"\\\\":2}');
    assert.equal(new PositionReader("/a").sequence('{"x":1,"\\u0061":2}'), 2n);
    assert.equal(new PositionReader("/\\").sequence('{"x":1,"\\u0061":2}'), undefined);
  });
});

function isNoJson(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch {
    return true;
  }
}
