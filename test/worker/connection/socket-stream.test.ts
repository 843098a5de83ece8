import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, describe, it } from "node:test";
import { WebSocketServer, type WebSocket } from "ws";
import type { SocketSettings } from "../../../worker/connection/socket.ts";
import { until } from "../../local/stack/until.ts";
import { Dialled } from "../support/dialled.ts";

describe("a stream from a real upstream", () => {
  let server: WebSocketServer;
  let peer: WebSocket;
  let dialled: Dialled;
  before(async () => {
    server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await once(server, "listening");
  });
  afterEach(() => dialled.socket.terminate());
  after(() => new Promise((resolve) => server.close(resolve)));

  const open = async (settings: Partial<SocketSettings> = {}): Promise<void> => {
    const connected = once(server, "connection") as Promise<[WebSocket]>;
    dialled = new Dialled(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/`, settings);
    [peer] = await connected;
    await dialled.opened();
  };

  it("delivers text as strings and binary as bytes that share no memory with the network's chunks", async () => {
    await open();
    peer.send("grüße");
    peer.send(Buffer.from([1, 2, 3]));
    peer.send("");
    await dialled.received(3);
    assert.deepEqual(dialled.messages, ["grüße", new Uint8Array([1, 2, 3]), ""]);
    const bytes = dialled.messages[1] as Uint8Array;
    assert.equal(bytes.buffer.byteLength, bytes.byteLength);
  });

  it("slows the sender down while it is paused, and loses nothing", async () => {
    await open();
    const chunk = "x".repeat(65_536);
    const count = 600;
    let flushed = 0;
    dialled.socket.pause();
    for (let n = 0; n < count; n++) peer.send(`${n}:${chunk}`, () => flushed++);
    // Nothing is read: the sender can only fill the buffers in between.
    let before = -1;
    await until("the sender stands still", async () => {
      const still = flushed === before;
      before = flushed;
      await new Promise((resolve) => setTimeout(resolve, 100));
      return still;
    });
    assert.ok(flushed < count, `${flushed} of ${count} were taken`);
    assert.ok(peer.bufferedAmount > 0);
    assert.equal(dialled.messages.length, 0);

    dialled.socket.resume();
    await dialled.received(count);
    assert.deepEqual(
      dialled.messages.map((message) => parseInt(String(message), 10)),
      Array.from({ length: count }, (_, n) => n),
    );
  });

  it("stays paused when it was paused before it opened", async () => {
    const connected = once(server, "connection") as Promise<[WebSocket]>;
    dialled = new Dialled(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/`, { pingIntervalMs: 20 });
    dialled.socket.pause();
    [peer] = await connected;
    let pings = 0;
    peer.on("ping", () => pings++);
    peer.send("early");
    await dialled.opened();
    await until("some time has passed", () => pings >= 3);
    assert.equal(dialled.messages.length, 0);
    dialled.socket.resume();
    await dialled.received(1);
  });

  it("does not take a paused peer for a dead one, and gives it the whole idle time again afterwards", async () => {
    await open({ pingIntervalMs: 40, idleTimeoutMs: 100 });
    let pings = 0;
    peer.on("ping", () => pings++);
    dialled.socket.pause();
    await until("several idle times have passed", () => pings >= 12);
    assert.deepEqual(dialled.ends, []);
    dialled.socket.resume();
    const heardAt = pings;
    await until("pongs keep it alive", () => pings >= heardAt + 6);
    assert.deepEqual(dialled.ends, []);
  });

  it("delivers everything that is on its way before the close is answered", async () => {
    await open();
    const count = 3000;
    dialled.onEach = () => {
      if (dialled.messages.length === 0) dialled.socket.close(20_000);
    };
    for (let n = 0; n < count; n++) peer.send(`message ${n}`);
    const end = await dialled.end();
    assert.equal(end.code, 1000);
    assert.equal(dialled.messages.length, count);
    assert.equal(dialled.messages.at(-1), `message ${count - 1}`);
  });

  it("reads on for the close even when it was paused", async () => {
    await open();
    dialled.socket.pause();
    for (let n = 0; n < 1000; n++) peer.send(`message ${n} ${"x".repeat(1000)}`);
    dialled.socket.close(20_000);
    assert.equal((await dialled.end()).code, 1000);
    assert.equal(dialled.messages.length, 1000);
  });

  it("tells code and reason of the upstream's own close", async () => {
    await open();
    peer.close(4004, "no such token");
    assert.deepEqual(await dialled.end(), { code: 4004, reason: "no such token" });
  });

  it("tells that the connection just ended", async () => {
    await open();
    peer.terminate();
    assert.equal((await dialled.end()).code, 1006);
  });

  it("ends with 1009 when a message is larger than the limit", async () => {
    await open({ maxMessageBytes: 1000 });
    const closed = once(peer, "close") as Promise<[number]>;
    peer.send("y".repeat(1000));
    peer.send("x".repeat(1001));
    assert.equal((await dialled.end()).code, 1009);
    assert.deepEqual(dialled.messages, ["y".repeat(1000)]);
    assert.equal((await closed)[0], 1009);
  });

  it("ends with 1007 when text is not UTF-8", async () => {
    await open();
    peer.send(Buffer.from([0x66, 0xff]), { binary: false });
    assert.equal((await dialled.end()).code, 1007);
  });

  it("says nothing more after it was terminated, though messages were already there", async () => {
    await open();
    dialled.onEach = () => dialled.socket.terminate();
    for (let n = 0; n < 100; n++) peer.send(`message ${n}`);
    await once(peer, "close");
    assert.equal(dialled.messages.length, 1);
    assert.deepEqual(dialled.ends, [{ code: 1006, error: "terminated" }]);
  });
});
