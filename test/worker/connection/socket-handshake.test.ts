import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type Server } from "node:http";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { afterEach, describe, it } from "node:test";
import { WebSocketServer } from "ws";
import { until } from "../../local/stack/until.ts";
import { Dialled } from "../support/dialled.ts";

describe("dialling an upstream", () => {
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });

  const answering = async (headers: Record<string, string>, status: number): Promise<string> => {
    const server: Server = createHttpServer();
    server.on("upgrade", (_request, socket) => {
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.end(`HTTP/1.1 ${status} No\r\n${lines.join("")}Content-Length: 0\r\n\r\n`);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    stops.push(async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    });
    return `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  };

  it("opens, and names the local port that the other side sees", async () => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await once(server, "listening");
    stops.push(() => new Promise((resolve) => server.close(() => resolve())));
    let remotePort: number | undefined;
    server.on("connection", (_ws, request) => (remotePort = request.socket.remotePort));
    const dialled = new Dialled(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    assert.equal(dialled.socket.localPort, undefined);
    await dialled.opened();
    assert.equal(dialled.socket.localPort, await until("the server's view", () => remotePort));
    dialled.socket.terminate();
  });

  it("gives up on a peer that accepts the connection and never answers", async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => sockets.push(socket.on("error", () => undefined).resume()));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    stops.push(async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    });
    const dialled = new Dialled(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
      handshakeTimeoutMs: 50,
    });
    assert.deepEqual(await dialled.end(), { error: "handshake timeout" });
    await until("the connection is closed", () => sockets[0]?.destroyed);
    assert.equal(dialled.ends.length, 1);
    assert.equal(dialled.opens, 0);
  });

  it("ends at once, and once, when it is taken back", async () => {
    const dialled = new Dialled(await answering({}, 500));
    dialled.socket.terminate();
    assert.equal(dialled.ends.length, 1);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(dialled.ends.length, 1);
    assert.equal(dialled.opens, 0);
  });

  it("tells of a port where nobody listens", async () => {
    const url = await answering({}, 500);
    for (const stop of stops.splice(0)) await stop();
    assert.match((await new Dialled(url).end()).error ?? "", /ECONNREFUSED/);
  });

  it("tells the HTTP status of a refused upgrade, once", async () => {
    const dialled = new Dialled(await answering({}, 401));
    assert.deepEqual(await dialled.end(), { httpStatus: 401 });
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(dialled.ends.length, 1);
  });

  it("follows no redirect", async () => {
    assert.deepEqual(await new Dialled(await answering({ Location: "ws://elsewhere.test/" }, 302)).end(), {
      httpStatus: 302,
    });
  });

  it("reads Retry-After in seconds", async () => {
    assert.deepEqual(await new Dialled(await answering({ "Retry-After": "7" }, 503)).end(), {
      httpStatus: 503,
      retryAfterMs: 7000,
    });
  });

  it("reads Retry-After as a date", async () => {
    const date = new Date(Date.now() + 3_600_000).toUTCString();
    const { retryAfterMs = 0 } = await new Dialled(await answering({ "Retry-After": date }, 503)).end();
    assert.ok(retryAfterMs > 3_500_000 && retryAfterMs <= 3_600_000, String(retryAfterMs));
  });

  for (const value of ["soon", "-5", "Thu, 01 Jan 1970 00:00:00 GMT", "0"]) {
    it(`takes Retry-After: ${value} for none`, async () => {
      assert.deepEqual(await new Dialled(await answering({ "Retry-After": value }, 429)).end(), { httpStatus: 429 });
    });
  }
});
