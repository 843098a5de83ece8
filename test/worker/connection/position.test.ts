import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { PositionReader } from "../../../worker/connection/position.ts";

const at = (pointer: string): PositionReader => new PositionReader(pointer);

/** An RFC 6901 pointer to what lies under these keys. */
const pointerTo = (keys: readonly string[]): string =>
  keys.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");

/** JSON text whose innermost value is `inner` as it stands, so that no number passes through a double. */
const nested = (keys: readonly string[], inner: string): string =>
  keys.reduceRight((text, key) => `{"before":[1,{"n":2}],${JSON.stringify(key)}:${text},"behind":0.5}`, inner);

const keys = fc.array(fc.string({ unit: fc.constantFrom("a", "B", "~", "/", "0", "1", '"', "ü", " ") }), {
  minLength: 1,
  maxLength: 5,
});
/** What {@link nested} itself puts beside the key. */
const foreign = keys.filter((all) => !all.some((key) => key === "before" || key === "behind"));

describe("reading a sequence", () => {
  it("reads every integer of up to 38 digits exactly, wherever it stands and whether number or string", () => {
    fc.assert(
      fc.property(foreign, fc.bigInt({ min: 0n, max: 10n ** 38n - 1n }), fc.boolean(), (path, position, quoted) => {
        const text = nested(path, quoted ? `"${position}"` : position.toString());
        assert.equal(at(pointerTo(path)).sequence(text), position);
      }),
    );
  });

  it("keeps neighbours beyond 2^53 apart, which a double would not", () => {
    assert.equal(at("/seq").sequence('{"seq":9007199254740992}'), 9_007_199_254_740_992n);
    assert.equal(at("/seq").sequence('{"seq":9007199254740993}'), 9_007_199_254_740_993n);
    assert.equal(at("/0/seq").sequence('[{"seq":18446744073709551615}]'), 18_446_744_073_709_551_615n);
  });

  it("takes the number at the pointer, not an equal-looking one elsewhere", () => {
    const text = '{"seq":{"seq":9007199254740993},"other":{"seq":9007199254740995}}';
    assert.equal(at("/seq/seq").sequence(text), 9_007_199_254_740_993n);
    assert.equal(at("/other/seq").sequence(text), 9_007_199_254_740_995n);
  });

  it("reads the whole message when the pointer is empty", () => {
    assert.equal(at("").sequence("42"), 42n);
    assert.equal(at("").sequence("9007199254740993"), 9_007_199_254_740_993n);
  });

  it("reads the escapes ~0 and ~1 in the right order", () => {
    assert.equal(at("/a~1b").sequence('{"a/b":1}'), 1n);
    assert.equal(at("/m~0n").sequence('{"m~n":2}'), 2n);
    assert.equal(at("/~01").sequence('{"~1":3,"/":4}'), 3n);
    assert.equal(at("/").sequence('{"":5}'), 5n);
  });

  for (const [source, position] of [
    ["1.0", 1n],
    ["0.0", 0n],
    ["-0", 0n],
    ["1e3", 1000n],
    ["1E+3", 1000n],
    ["12.50e1", 125n],
    ["1.25e1", undefined],
    ["100e-2", 1n],
    ["120e-2", undefined],
    ["1.00000000000000000000001", undefined],
    ["4503599627370496.4", undefined],
    ["-1.0", undefined],
    ["9007199254740991.4", undefined],
  ] as const) {
    it(`judges by its digits whether ${source} is whole, not by what a double makes of it`, () => {
      assert.equal(at("/seq").sequence(`{"seq":${source}}`), position);
      assert.equal(at("/seq").sequence(`{"other":"1.5e3","seq":${source},"more":2.5}`), position);
    });
  }

  it("reads members whose names are written with escapes", () => {
    assert.equal(at("/seq").sequence('{"s\\u0065q":7}'), 7n);
    assert.equal(at("/seq").sequence('{"\\u0073eq" \n:8}'), 8n);
    assert.equal(at('/a"b').sequence('{"a\\"b":9}'), 9n);
    assert.equal(at("/seq").sequence('{"\\u0073eq":"10"}'), 10n);
    assert.equal(at("/seq").sequence('{"s\\u0065x":1}'), undefined);
  });

  it("finds elements of an array by their number alone, and nothing below what has no members", () => {
    assert.equal(at("/10").sequence(`[${"0,".repeat(10)}42]`), 42n);
    for (const [pointer, text] of [
      ["/length", "[1,2]"],
      ["/1x", "[1,2]"],
      ["/x1", "[1,2]"],
      ["/-", "[1,2]"],
      ["/seq/length", '{"seq":"text"}'],
      ["/seq/x", '{"seq":null}'],
      ["/seq/x", '{"seq":7}'],
      ["/seq/x", "{}"],
    ] as const) {
      assert.equal(at(pointer).sequence(text), undefined, `${pointer} of ${text}`);
    }
  });

  for (const [what, text] of [
    ["a negative integer", '{"seq":-1}'],
    ["a fraction", '{"seq":1.5}'],
    ["a fraction beyond 2^53", '{"seq":9007199254740993.5}'],
    ["an exponent beyond 2^53", '{"seq":1e30}'],
    ["39 digits", `{"seq":${"9".repeat(39)}}`],
    ["a leading zero in a string", '{"seq":"007"}'],
    ["a sign in a string", '{"seq":"+7"}'],
    ["an empty string", '{"seq":""}'],
    ["null", '{"seq":null}'],
    ["a boolean", '{"seq":true}'],
    ["an object", '{"seq":{}}'],
    ["an array", '{"seq":[1]}'],
    ["nothing at the pointer", '{"other":1}'],
    ["something inherited at the pointer", "{}"],
    ["text that is no JSON", "seq=1"],
    ["an empty message", ""],
  ] as const) {
    it(`finds no position in ${what}`, () => {
      const pointer = what.includes("inherited") ? "/constructor/length" : "/seq";
      assert.equal(at(pointer).sequence(text), undefined);
    });
  }
});

describe("reading a cursor", () => {
  it("gives strings back as they came", () => {
    fc.assert(
      fc.property(foreign, fc.string({ unit: "grapheme", maxLength: 200 }), (path, cursor) => {
        assert.equal(at(pointerTo(path)).cursor(nested(path, JSON.stringify(cursor))), cursor);
      }),
    );
  });

  it("gives numbers back by their own digits, also where a double would round them", () => {
    assert.equal(at("/time_us").cursor('{"time_us":1725911162329308}'), "1725911162329308");
    assert.equal(at("/t").cursor('{"t":12345678901234567890}'), "12345678901234567890");
    assert.equal(at("/t").cursor('{"t":1700000000.123456789}'), "1700000000.123456789");
  });

  it("takes none that no URL and no item could carry: broken characters, or beyond 2,048 characters", () => {
    assert.equal(at("/c").cursor(JSON.stringify({ c: "x".repeat(2048) })), "x".repeat(2048));
    assert.equal(at("/c").cursor(JSON.stringify({ c: "x".repeat(2049) })), undefined);
    assert.equal(at("/c").cursor('{"c":"broken \\ud800 half"}'), undefined);
    assert.equal(at("/c").cursor('{"c":"whole \\ud83d\\ude00"}'), "whole 😀");
  });

  it("finds none in what is neither text nor number", () => {
    for (const value of ["null", "true", "{}", "[]"]) assert.equal(at("/c").cursor(`{"c":${value}}`), undefined);
    assert.equal(at("/c").cursor("{"), undefined);
  });
});
