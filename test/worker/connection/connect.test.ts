import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpsServer } from "node:https";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { after, afterEach, before, describe, it } from "node:test";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { WebSocketServer } from "ws";
import { until } from "../../local/stack/until.ts";
import { Dialled } from "../support/dialled.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../support/test-certificate.ts";

/** Keeps this thread busy, so that whatever the kernel does meanwhile is seen only afterwards. */
function blockEventLoop(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

describe("the connection of a dial", () => {
  const trusted = getCACertificates();
  const stops: (() => Promise<void>)[] = [];
  before(() => setDefaultCACertificates([...trusted, TEST_CERTIFICATE]));
  after(() => setDefaultCACertificates(trusted));
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });

  interface Peer {
    readonly port: number;
    readonly sockets: { readonly socket: Socket; readonly bytes: () => Buffer }[];
  }

  /** Accepts TCP connections and keeps what they say. */
  const listening = async (): Promise<Peer> => {
    const sockets: Peer["sockets"] = [];
    const server: Server = createServer((socket) => {
      const chunks: Buffer[] = [];
      socket.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", () => undefined);
      sockets.push({ socket, bytes: () => Buffer.concat(chunks) });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    stops.push(async () => {
      for (const { socket } of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    });
    return { port: (server.address() as AddressInfo).port, sockets };
  };

  const closed = async ({ sockets }: Peer): Promise<Buffer> => {
    const { socket, bytes } = await until("the connection", () => sockets[0]);
    await until("its end", () => socket.destroyed);
    return bytes();
  };

  for (const scheme of ["ws", "wss"]) {
    it(`of ${scheme} says nothing to the upstream when the deadline passed before it was there`, async () => {
      const peer = await listening();
      let mayAct = true;
      const dialled = new Dialled(`${scheme}://127.0.0.1:${peer.port}/`);
      dialled.mayAct = () => mayAct;
      // The kernel connects while this process stands still; when it goes on, the deadline has passed.
      blockEventLoop(20);
      mayAct = false;
      const end = await dialled.end();
      assert.match(end.error ?? "", /deadline passed/);
      assert.deepEqual(await closed(peer), Buffer.alloc(0));
    });
  }

  it("of wss sends no upgrade when the deadline passed during the TLS handshake", async () => {
    const sockets: Socket[] = [];
    let upgrades = 0;
    const server = createHttpsServer({ key: TEST_KEY, cert: TEST_CERTIFICATE });
    server.on("connection", (socket: Socket) => sockets.push(socket)).on("upgrade", () => upgrades++);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    stops.push(async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    });
    let asked = 0;
    const dialled = new Dialled(`wss://localhost:${(server.address() as AddressInfo).port}/`);
    // Asked once the TCP connection is there, and again when it is secure.
    dialled.mayAct = () => ++asked === 1;
    const end = await dialled.end();
    assert.match(end.error ?? "", /deadline passed/);
    await until("the connection's end", () => sockets[0]?.destroyed);
    assert.equal(asked, 2);
    assert.equal(upgrades, 0);
  });

  it("is made over TLS, to the host that the certificate names, and carries messages", async () => {
    const server = createHttpsServer({ key: TEST_KEY, cert: TEST_CERTIFICATE });
    const wss = new WebSocketServer({ server });
    wss.on("connection", (ws) => ws.send("hello"));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    stops.push(async () => {
      for (const ws of wss.clients) ws.terminate();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    });
    const { port } = server.address() as AddressInfo;
    for (const host of ["localhost", "127.0.0.1"]) {
      const dialled = await new Dialled(`wss://${host}:${port}/`).opened();
      await dialled.received(1);
      assert.deepEqual(dialled.messages, ["hello"]);
      assert.equal(typeof dialled.socket.localPort, "number");
      dialled.socket.terminate();
    }
  });

  it("is refused when nobody trusts the upstream's certificate", async () => {
    setDefaultCACertificates(trusted);
    try {
      const server = createHttpsServer({ key: TEST_KEY, cert: TEST_CERTIFICATE });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      stops.push(async () => {
        server.closeAllConnections();
        server.close();
        await once(server, "close");
      });
      const end = await new Dialled(`wss://localhost:${(server.address() as AddressInfo).port}/`).end();
      assert.match(end.error ?? "", /self-signed certificate/);
    } finally {
      setDefaultCACertificates([...trusted, TEST_CERTIFICATE]);
    }
  });

  it("is refused when the certificate names another host, be it an address", async () => {
    const server = createHttpsServer({ key: TEST_KEY, cert: TEST_CERTIFICATE });
    // The certificate names localhost and 127.0.0.1.
    server.listen(0, "127.0.0.2");
    await once(server, "listening");
    stops.push(async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    });
    const end = await new Dialled(`wss://127.0.0.2:${(server.address() as AddressInfo).port}/`).end();
    assert.match(end.error ?? "", /does not match certificate/);
  });

  it("is closed when the dial is taken back before it was secure", async () => {
    const peer = await listening();
    const dialled = new Dialled(`wss://127.0.0.1:${peer.port}/`);
    const { socket } = await until("the connection", () => peer.sockets[0]);
    dialled.socket.terminate();
    await until("its end", () => socket.destroyed);
    assert.equal(dialled.ends.length, 1);
  });
});
