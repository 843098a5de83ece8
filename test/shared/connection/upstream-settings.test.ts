import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  checkWsUrl,
  CURSOR_PLACEHOLDER,
  kindOf,
  parseSeq,
  upstreamSettingsSchema,
} from "../../../shared/connection/upstream-settings.ts";

describe("checkWsUrl", () => {
  for (const url of [
    "ws://127.0.0.1:8080",
    "wss://feed.test/",
    "wss://feed.test/v2/stream?cursor={cursor}&wanted=a",
    "wss://feed.test/from/{cursor}/on",
    "wss://[::1]:443/x",
  ]) {
    it(`accepts ${url}`, () => assert.equal(checkWsUrl(url), undefined));
  }

  for (const [url, rule] of [
    ["", /not a URL/],
    ["feed.test", /not a URL/],
    ["wss://", /not a URL/],
    ["https://feed.test/", /ws:\/\/ or wss:\/\//],
    ["javascript:alert(1)", /ws:\/\/ or wss:\/\//],
    ["wss://feed.test/#top", /fragment/],
    ["wss://user@feed.test/", /credentials/],
    ["wss://:secret@feed.test/", /credentials/],
    // What an upstream sent must not choose whom a worker talks to next.
    ["wss://{cursor}/", /\{cursor\}/],
    ["wss://{cursor}.feed.test/", /\{cursor\}/],
    ["wss://feed.test:{cursor}/", /\{cursor\}/],
    ["wss://feed.test{cursor}/", /\{cursor\}/],
    ["{cursor}", /not a URL/],
  ] as const) {
    it(`refuses ${JSON.stringify(url)}`, () => assert.match(checkWsUrl(url) ?? "accepted", rule));
  }

  it("never throws, and what it accepts is a WebSocket URL whose host no position can change", () => {
    const piece = fc.constantFrom(
      "ws:",
      "wss://",
      "feed.test",
      ":80",
      "/",
      CURSOR_PLACEHOLDER,
      "?a=",
      "@",
      "x",
      "#",
      "[",
    );
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.webUrl(),
      fc.array(piece).map((pieces) => pieces.join("")),
    );
    fc.assert(
      fc.property(text, (url) => {
        if (checkWsUrl(url) !== undefined) return;
        const hosts = ["0", "7", "evil.test", "@evil.test/", "1/../.."].map((cursor) => {
          const filled = new URL(url.replaceAll(CURSOR_PLACEHOLDER, encodeURIComponent(cursor)));
          assert.match(filled.protocol, /^wss?:$/);
          return filled.host;
        });
        assert.equal(new Set(hosts).size, 1, `${url} leads to ${hosts.join(" and ")}`);
      }),
      { numRuns: 3000 },
    );
  });
});

describe("parseSeq", () => {
  it("is the inverse of writing a position down, up to 38 digits", () => {
    const position = fc.bigInt({ min: 0n, max: 10n ** 38n - 1n });
    fc.assert(fc.property(position, (seq) => assert.equal(parseSeq(seq.toString()), seq)));
  });

  it("takes nothing but the plain decimal text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const seq = parseSeq(text);
        assert.ok(seq === undefined || seq.toString() === text);
      }),
    );
    assert.equal(parseSeq((10n ** 38n).toString()), undefined);
  });
});

describe("upstream settings", () => {
  const problems = (settings: unknown): string =>
    upstreamSettingsSchema
      .safeParse(settings)
      .error?.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`)
      .join() ?? "";

  for (const pointer of ["", "/seq", "/payload/seq", "/2/created_at", "/a~1b/~0", "/"]) {
    it(`accepts the pointer ${JSON.stringify(pointer)}`, () => {
      assert.equal(problems({ position: { pointer, kind: "sequence" } }), "");
    });
  }
  for (const pointer of ["seq", "/a~", "/a~2", "#/seq", "/".repeat(513), 7, undefined]) {
    it(`refuses the pointer ${JSON.stringify(pointer ?? null).slice(0, 20)}`, () => {
      assert.match(problems({ position: { pointer, kind: "sequence" } }), /^position\.pointer: /);
    });
  }

  it("refuses unknown keys by name: a typo must not change how a feed is read", () => {
    assert.match(problems({ positions: {} }), /positions/);
    assert.match(problems({ position: { pointer: "/s", kind: "cursor", intial: "0" } }), /intial/);
  });

  it("only a sequence makes a feed positioned", () => {
    assert.equal(kindOf(undefined), "unpositioned");
    assert.equal(kindOf({}), "unpositioned");
    assert.equal(kindOf({ position: { pointer: "/c", kind: "cursor" } }), "unpositioned");
    assert.equal(kindOf({ position: { pointer: "/s", kind: "sequence" } }), "positioned");
  });
});
