import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { SystemClock } from "../../../shared/clock.ts";
import { Deadline } from "../../../shared/lease/index.ts";
import { until } from "../../local/stack/until.ts";
import { Dialled } from "../support/dialled.ts";
import { closeFrame, frame, OPCODE, RawUpstream } from "../support/raw-upstream.ts";

/** Keeps this thread busy, as a long garbage collection or a heavy neighbour would. */
function blockEventLoop(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

describe("a socket past its owner's deadline", () => {
  let upstream: RawUpstream;
  let dialled: Dialled;
  let n = -1;
  before(async () => {
    upstream = await RawUpstream.start();
  });
  beforeEach(() => n++);
  afterEach(() => dialled.socket.terminate());
  after(() => upstream.stop());

  it("answers pings, with their payload, while its owner may act", async () => {
    dialled = await new Dialled(upstream.url).opened();
    const peer = await upstream.socket(n);
    peer.socket.write(frame(OPCODE.ping, "are you there"));
    await until("the pong", () => peer.opcodes().includes(OPCODE.pong));
  });

  it("answers no ping", async () => {
    dialled = await new Dialled(upstream.url).opened();
    const peer = await upstream.socket(n);
    dialled.mayAct = () => false;
    peer.socket.write(Buffer.concat([frame(OPCODE.ping), frame(OPCODE.text, "behind the ping")]));
    await dialled.received(1);
    dialled.socket.terminate();
    await until("the connection is closed", () => peer.ended);
    assert.deepEqual(peer.opcodes(), []);
  });

  it("sends no ping of its own", async () => {
    dialled = new Dialled(upstream.url, { pingIntervalMs: 10, idleTimeoutMs: 100 });
    // Only the connect is allowed: a ping sent before it is forbidden could still be on its way when frames are counted.
    let asked = 0;
    dialled.mayAct = () => asked++ === 0;
    const peer = await upstream.socket(n);
    await dialled.end();
    await until("the connection is closed", () => peer.ended);
    assert.deepEqual(peer.opcodes(), []);
  });

  it("answers no close, and is gone at once", async () => {
    dialled = await new Dialled(upstream.url).opened();
    const peer = await upstream.socket(n);
    dialled.mayAct = () => false;
    peer.socket.write(closeFrame(1001));
    assert.equal((await dialled.end()).code, 1001);
    await until("the connection is closed", () => peer.ended);
    assert.deepEqual(peer.opcodes(), []);
  });

  it("does not complain about a bad frame", async () => {
    dialled = await new Dialled(upstream.url, { maxMessageBytes: 10 }).opened();
    const peer = await upstream.socket(n);
    dialled.mayAct = () => false;
    peer.socket.write(frame(OPCODE.text, "x".repeat(11)));
    await dialled.end();
    await until("the connection is closed", () => peer.ended);
    assert.deepEqual(peer.opcodes(), []);
  });

  it("sends no close when it is asked to", async () => {
    dialled = await new Dialled(upstream.url).opened();
    const peer = await upstream.socket(n);
    dialled.mayAct = () => false;
    dialled.socket.close(20_000);
    await until("the connection is closed", () => peer.ended);
    assert.deepEqual(peer.opcodes(), []);
    assert.equal(dialled.ends.length, 1);
  });

  it("stays silent when the event loop stood still until after the deadline, whatever has arrived meanwhile", async () => {
    dialled = await new Dialled(upstream.url).opened();
    const peer = await upstream.socket(n);
    const deadline = Deadline.startingNow(new SystemClock(), 100);
    dialled.mayAct = () => !deadline.passed();
    // All of it reaches the kernel before the loop stands still; no timer has a chance before it is read.
    peer.socket.write(
      Buffer.concat([frame(OPCODE.ping), frame(OPCODE.text, "late"), frame(OPCODE.ping), closeFrame(1001)]),
    );
    blockEventLoop(150);
    await until("the connection is closed", () => peer.ended);
    assert.deepEqual(peer.opcodes(), []);
    assert.equal(dialled.ends.length, 1);
  });
});
