import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FrameWatch } from "../../../local/chaos/proxy/frame-watch.ts";
import { frame, upgrade } from "./helpers.ts";

/** A masked frame whose payload looks like frames. */
function textOf(bytes: number): Buffer {
  const length =
    bytes < 126
      ? Buffer.from([0x80 | bytes])
      : bytes < 65_536
        ? Buffer.from([0x80 | 126, bytes >> 8, bytes & 0xff])
        : Buffer.concat([Buffer.from([0x80 | 127, 0, 0, 0, 0]), be32(bytes)]);
  return Buffer.concat([Buffer.from([0x81]), length, Buffer.from([1, 2, 3, 4]), Buffer.alloc(bytes, 0x89)]);
}

function be32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

const stream = Buffer.concat([
  Buffer.from(upgrade("talk-00001")),
  frame(9),
  textOf(5),
  frame(10),
  textOf(300),
  textOf(70_000),
  frame(8),
]);
const kinds = ["ping", "text", "pong", "text", "text", "close"];

describe("reading along what a WebSocket client says", () => {
  for (const size of [stream.length, 1, 2, 7, 1_000]) {
    it(`finds every frame in chunks of ${size} bytes, at the time of its header`, () => {
      const watch = new FrameWatch();
      for (let at = 0; at < stream.length; at += size) watch.feed(stream.subarray(at, at + size), at);
      assert.equal(watch.path, "/live/talk-00001");
      assert.deepEqual(
        watch.frames.map(({ kind }) => kind),
        kinds,
      );
      const times = watch.frames.map(({ atMs }) => atMs);
      assert.deepEqual(
        times,
        times.toSorted((a, b) => a - b),
      );
    });
  }

  it("knows no path before the request is complete", () => {
    const watch = new FrameWatch();
    watch.feed(Buffer.from("GET /live/c1 HTTP/1.1\r\nHost: upstream\r\n"), 1);
    assert.equal(watch.path, undefined);
    watch.feed(Buffer.from("\r\n"), 2);
    assert.equal(watch.path, "/live/c1");
  });

  it("refuses what is no request of a WebSocket client", () => {
    assert.throws(() => new FrameWatch().feed(Buffer.from("POST / HTTP/1.1\r\n\r\n"), 1), /must begin with GET/);
    assert.throws(() => new FrameWatch().feed(Buffer.alloc(20_000, 65), 1), /at most 16384 bytes/);
  });
});
