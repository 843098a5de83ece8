import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { until } from "../../local/stack/until.ts";
import { Dialled } from "../support/dialled.ts";
import { closeFrame, frame, OPCODE, RawUpstream } from "../support/raw-upstream.ts";

/** Far below the 30 s that `ws` itself would wait for the end of a closing connection. */
const SOON_MS = 10_000;

describe("an upstream that leaves its part of the protocol undone", () => {
  let upstream: RawUpstream;
  let dialled: Dialled;
  before(async () => {
    upstream = await RawUpstream.start();
  });
  let n = -1;
  beforeEach(() => n++);
  afterEach(() => dialled.socket.terminate());
  after(() => upstream.stop());

  it("is given up when nothing at all is heard from it, pings or not", async () => {
    dialled = await new Dialled(upstream.url, { pingIntervalMs: 30, idleTimeoutMs: 100 }).opened();
    const peer = await upstream.socket(n);
    const end = await dialled.end();
    assert.match(end.error ?? "", /^nothing received for \d+ ms$/);
    assert.equal(end.code, undefined);
    await until("the connection is closed", () => peer.ended);
    const opcodes = peer.opcodes();
    assert.ok(opcodes.length >= 1 && opcodes.every((opcode) => opcode === OPCODE.ping), String(opcodes));
  });

  it("is kept while anything is heard from it, be it a ping", async () => {
    dialled = await new Dialled(upstream.url, { pingIntervalMs: 30, idleTimeoutMs: 300 }).opened();
    const peer = await upstream.socket(n);
    const timer = setInterval(() => peer.socket.write(frame(OPCODE.ping)), 10);
    try {
      await until(
        "several idle times have passed",
        () => peer.opcodes().filter((one) => one === OPCODE.ping).length >= 30,
      );
      assert.deepEqual(dialled.ends, []);
    } finally {
      clearInterval(timer);
    }
  });

  it("is waited for only for the grace when it does not answer a close; what it sends until then is kept", async () => {
    dialled = await new Dialled(upstream.url).opened();
    const peer = await upstream.socket(n);
    dialled.socket.close(300);
    await until("the close arrives", () => peer.opcodes().includes(OPCODE.close));
    peer.socket.write(frame(OPCODE.text, "on its way"));
    await dialled.received(1);
    assert.deepEqual(dialled.ends, []);
    assert.equal((await dialled.end()).code, 1006);
    await until("the connection is closed", () => peer.ended);
  });

  it("loses nothing on its way when the close is asked for twice", async () => {
    dialled = await new Dialled(upstream.url).opened();
    const peer = await upstream.socket(n);
    dialled.socket.close(20_000);
    dialled.socket.close(20_000);
    await until("the close arrives", () => peer.opcodes().includes(OPCODE.close));
    peer.socket.write(Buffer.concat([frame(OPCODE.text, "on its way"), closeFrame(1000)]));
    peer.socket.end();
    assert.equal((await dialled.end()).code, 1000);
    assert.deepEqual(dialled.messages, ["on its way"]);
    assert.deepEqual(
      peer.opcodes().filter((opcode) => opcode === OPCODE.close),
      [OPCODE.close],
    );
  });

  it("is waited for only for the grace when it closes and then leaves the connection open", async () => {
    dialled = await new Dialled(upstream.url, { closeGraceMs: 50 }).opened();
    const peer = await upstream.socket(n);
    const startedMs = performance.now();
    peer.socket.allowHalfOpen = true;
    peer.socket.write(closeFrame(1001));
    const end = await dialled.end();
    assert.equal(end.code, 1001, "the code it gave still decides");
    assert.ok(performance.now() - startedMs < SOON_MS);
    await until("the close was answered", () => peer.opcodes().includes(OPCODE.close));
  });
});
