import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, it } from "node:test";
import fc from "fast-check";
import { WebSocketServer, type WebSocket } from "ws";
import { SystemClock } from "../../../shared/clock.ts";
import { dialer, type Dial, type SocketEvents } from "../../../worker/connection/socket.ts";
import { UNCOUNTED_BYTES, UnfinishedMessages, type Receiving } from "../../../worker/connection/unfinished.ts";
import { until } from "../../local/stack/until.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import { SOCKET_SETTINGS } from "../support/dialled.ts";

const CHUNK = 65_536;

/** A socket that reads chunk by chunk while it may. */
class Reader implements Receiving {
  bytes = 0;
  held = false;
  givenUp = false;
  hold(): void {
    this.held = true;
  }
  letGo(): void {
    this.held = false;
  }
  giveUp(): void {
    this.givenUp = true;
  }
}

describe("memory for unfinished messages", () => {
  it("is bounded whatever comes: beyond it only the one that began first reads on", () => {
    const step = fc.tuple(fc.nat({ max: 19 }), fc.constantFrom("chunk", "chunk", "chunk", "end"));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const largest = 16 * CHUNK;
        const settings = { maxBytes: 20 * CHUNK, patienceMs: 1000 };
        const unfinished = new UnfinishedMessages(new VirtualClock(), settings);
        const readers = Array.from({ length: 20 }, () => new Reader());
        for (const [n, what] of steps) {
          const reader = readers[n];
          if (reader === undefined || reader.held) continue;
          reader.bytes = what === "end" || reader.bytes === largest ? 0 : reader.bytes + CHUNK;
          unfinished.note(reader, reader.bytes);
          const bytes = readers.reduce((sum, one) => sum + one.bytes, 0);
          assert.ok(bytes <= settings.maxBytes + largest + 2 * CHUNK * readers.length, `${bytes} bytes`);
          assert.ok(
            bytes === 0 || readers.some((one) => one.bytes > 0 && !one.held),
            "somebody who began goes on, or none would ever finish",
          );
          if (unfinished.totalBytes <= settings.maxBytes) assert.ok(readers.every((one) => !one.held));
        }
      }),
    );
  });

  it("is not asked for by messages of one read", () => {
    const unfinished = new UnfinishedMessages(new VirtualClock(), { maxBytes: CHUNK, patienceMs: 1000 });
    const readers = Array.from({ length: 100 }, () => new Reader());
    for (const reader of readers) unfinished.note(reader, UNCOUNTED_BYTES);
    assert.equal(unfinished.totalBytes, 0);
    assert.ok(readers.every((one) => !one.held));
  });

  it("is given to the next when a message does not end for too long", async () => {
    const clock = new VirtualClock();
    const unfinished = new UnfinishedMessages(clock, { maxBytes: 2 * CHUNK, patienceMs: 1000 });
    const [first, second, third] = [new Reader(), new Reader(), new Reader()];
    unfinished.note(first, 2 * CHUNK);
    await clock.advance(5000);
    assert.equal(first.givenUp, false, "nobody waits for it");
    unfinished.note(second, 2 * CHUNK);
    unfinished.note(third, 2 * CHUNK);
    assert.deepEqual([first.held, second.held, third.held], [false, true, true]);
    await clock.advance(999);
    assert.equal(first.givenUp, false);
    await clock.advance(1);
    assert.equal(first.givenUp, true);
    unfinished.note(first, 0);
    assert.deepEqual([second.held, third.held], [false, true]);
    await clock.advance(999);
    assert.equal(second.givenUp, false, "each has its own time");
    unfinished.note(second, 0);
    assert.equal(third.held, false);
    await clock.advance(60_000);
    assert.equal(third.givenUp, false);
    assert.equal(clock.pendingTimers, 0);
  });
});

describe("sockets that share the memory for unfinished messages", () => {
  let http: Server;
  let server: WebSocketServer;
  let peers: WebSocket[];
  beforeEach(async () => {
    peers = [];
    http = createServer();
    server = new WebSocketServer({ server: http });
    server.on("connection", (peer) => peers.push(peer.on("error", () => undefined)));
    http.listen(0, "127.0.0.1");
    await once(http, "listening");
  });
  afterEach(async () => {
    for (const peer of peers) peer.terminate();
    http.closeAllConnections();
    http.close();
    await once(http, "close");
  });

  const open = async (dial: Dial, count: number) => {
    const received = Array.from({ length: count }, () => [] as string[]);
    const ended = Array.from({ length: count }, () => "");
    let opened = 0;
    const sockets = received.map((messages, n) => {
      const events: SocketEvents = {
        onOpen: () => opened++,
        onMessage: (payload) => messages.push(String(payload)),
        onEnd: (end) => (ended[n] = end.error ?? String(end.code)),
      };
      return dial(`ws://127.0.0.1:${(http.address() as AddressInfo).port}/${n}`, events, () => true);
    });
    await until("all are open", () => opened === count && peers.length === count);
    return { received, ended, sockets };
  };

  const HALF = "x".repeat(400_000);
  /** What no buffer of the kernel takes: a peer that still has it unsent is not being read. */
  const waiting = (): number => peers.filter((peer) => peer.bufferedAmount > 0).length;

  it("all get their messages in the end, though not all at once", async () => {
    const settings = { ...SOCKET_SETTINGS, unfinishedMaxBytes: 1_048_576 };
    const { received, ended, sockets } = await open(dialer(new SystemClock(), settings), 12);
    for (const peer of peers) {
      peer.send(HALF, { fin: false });
      peer.send(HALF, { fin: false });
    }
    // All together they are nine times the memory: were each held until there is room for it, none would ever end.
    for (const peer of peers) peer.send("", { fin: true });
    await until("every message is whole", () => received.every((messages) => messages.length === 1));
    assert.ok(received.every(([message]) => message === HALF + HALF));
    assert.ok(ended.every((end) => end === ""));
    for (const socket of sockets) socket.terminate();
  });

  it("do not wait for ever for one that never ends its message", async () => {
    const settings = {
      ...SOCKET_SETTINGS,
      unfinishedMaxBytes: 1_048_576,
      maxMessageBytes: 8_000_000,
      idleTimeoutMs: 300,
    };
    const { received, ended, sockets } = await open(dialer(new SystemClock(), settings), 4);
    const endless = peers[0];
    for (let n = 0; n < 10; n++) endless?.send(HALF, { fin: false });
    // Whichever socket it is, its message is the first one.
    await until("it has been read", () => endless?.bufferedAmount === 0);
    for (const peer of peers.slice(1)) {
      for (let n = 0; n < 16; n++) peer.send(HALF, { fin: false });
      peer.send("", { fin: true });
    }
    await until("the others are held", () => waiting() > 0);
    await until("the others are whole", () => received.filter((messages) => messages.length === 1).length === 3);
    assert.equal(ended.filter((end) => end.includes("does not end")).length, 1);
    for (const socket of sockets) socket.terminate();
  });

  it("are ended when a message comes in pieces so small that they cost far more than they bring", async () => {
    const { ended, sockets } = await open(dialer(new SystemClock(), SOCKET_SETTINGS), 1);
    for (let n = 0; n < 5000; n++) peers[0]?.send("x", { fin: false });
    await until("the end", () => ended[0] !== "");
    assert.match(ended[0] ?? "", /fragments/);
    for (const socket of sockets) socket.terminate();
  });
});
