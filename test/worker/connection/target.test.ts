import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { ConnectionItem } from "../../../shared/connection/item.ts";
import { targetUrl, type ResumePoint } from "../../../worker/connection/target.ts";

type Target = Pick<ConnectionItem, "wsUrl" | "upstream" | "kind">;

const positioned = (wsUrl: string, initial?: string): Target => ({
  wsUrl,
  kind: "positioned",
  upstream: { position: { pointer: "/seq", kind: "sequence", ...(initial === undefined ? {} : { initial }) } },
});
const unpositioned = (wsUrl: string, initial?: string): Target => ({
  wsUrl,
  kind: "unpositioned",
  upstream: { position: { pointer: "/c", kind: "cursor", ...(initial === undefined ? {} : { initial }) } },
});
const resume = (point: Partial<ResumePoint> = {}): ResumePoint => ({
  lastSeq: undefined,
  lastCursor: undefined,
  ...point,
});

describe("the URL to dial", () => {
  it("is the stored one where nothing is to be filled in", () => {
    const url = "wss://feed.test/stream?a=1&b=%20#x";
    assert.equal(targetUrl(positioned(url), resume({ lastSeq: 7n })), url);
  });

  it("carries the last position of a positioned feed and the last cursor of any other", () => {
    const url = "wss://feed.test/{cursor}/s?from={cursor}";
    const both = resume({ lastSeq: 2n ** 64n, lastCursor: "c-1" });
    assert.equal(targetUrl(positioned(url), both), "wss://feed.test/18446744073709551616/s?from=18446744073709551616");
    assert.equal(targetUrl(unpositioned(url), both), "wss://feed.test/c-1/s?from=c-1");
  });

  it("gives an opaque cursor back unchanged, whatever characters it has", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1 }), (cursor) => {
        const url = new URL(
          targetUrl(unpositioned("wss://feed.test/?from={cursor}&x=1"), resume({ lastCursor: cursor })),
        );
        assert.equal(url.searchParams.get("from"), cursor);
        assert.equal(url.searchParams.get("x"), "1");
      }),
    );
  });

  it("begins at the initial value before anything was stored", () => {
    assert.equal(targetUrl(positioned("ws://f.test/?c={cursor}", "0"), resume()), "ws://f.test/?c=0");
    assert.equal(targetUrl(positioned("ws://f.test/?c={cursor}", "0"), resume({ lastSeq: 0n })), "ws://f.test/?c=0");
    assert.equal(targetUrl(positioned("ws://f.test/?c={cursor}", "9"), resume({ lastSeq: 0n })), "ws://f.test/?c=0");
  });

  for (const [url, expected] of [
    ["wss://f.test/s?cursor={cursor}", "wss://f.test/s"],
    ["wss://f.test/s?a=1&cursor={cursor}&b=2", "wss://f.test/s?a=1&b=2"],
    ["wss://f.test/s?cursor={cursor}&b=2", "wss://f.test/s?b=2"],
    ["wss://f.test/s/{cursor}", "wss://f.test/s/"],
    ["wss://f.test/s?from=x-{cursor}", "wss://f.test/s?from=x-"],
    ["wss://f.test/s?a=is?it&cursor={cursor}", "wss://f.test/s?a=is?it"],
  ] as const) {
    it(`leaves out what has no value yet: ${url}`, () => {
      assert.equal(targetUrl(positioned(url), resume()), expected);
    });
  }
});
