import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { FaultProxy, type ProxyOptions } from "../../../local/chaos/proxy/proxy.ts";
import { Fault } from "../../../local/chaos/proxy/fault.ts";
import type { NetworkEffect } from "../../../local/chaos/proxy/effect.ts";
import { SystemClock } from "../../../shared/clock.ts";
import { until } from "../stack/until.ts";

/** One end of a connection, and all that came of it. */
export class End {
  readonly socket: Socket;
  received = "";
  receivedBytes = 0;
  ended = false;
  closed = false;
  errorCode: string | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => {
      this.receivedBytes += chunk.length;
      if (this.receivedBytes < 100_000) this.received += chunk.toString("latin1");
    });
    socket.on("end", () => (this.ended = true));
    socket.on("error", (error: NodeJS.ErrnoException) => (this.errorCode = error.code));
    socket.on("close", () => (this.closed = true));
  }

  async gets(text: string): Promise<void> {
    await until(`${JSON.stringify(text)} to arrive`, () => this.received.includes(text));
  }
}

/** A server behind a proxy. Everything is ended by `stop`. */
export class Scene {
  readonly proxy: FaultProxy;
  readonly accepted: End[] = [];
  readonly #server: Server;
  readonly #clients: End[] = [];

  private constructor(proxy: FaultProxy, server: Server) {
    this.proxy = proxy;
    this.#server = server;
    server.on("connection", (socket) => this.accepted.push(new End(socket)));
  }

  static async start(options: Pick<ProxyOptions, "webSocket"> = {}): Promise<Scene> {
    const server = createServer({ allowHalfOpen: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const target = { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
    const proxy = await FaultProxy.start({ target, clock: new SystemClock(), random: () => 0.5, ...options });
    return new Scene(proxy, server);
  }

  /** Connects through the proxy and says `hello`, so that both ends are known. */
  async connected(hello = "hello"): Promise<{ client: End; server: End }> {
    const client = this.dial();
    client.socket.write(hello);
    const server = await until("the server's end", () => this.accepted.find(({ received }) => received === hello));
    server.received = "";
    return { client, server };
  }

  dial(): End {
    const client = new End(connect({ host: "127.0.0.1", port: this.proxy.port, allowHalfOpen: true }));
    this.#clients.push(client);
    return client;
  }

  begin(effect: NetworkEffect, share = 1, salt = 0): Fault {
    const fault = new Fault(effect, share, salt);
    this.proxy.begin(fault);
    return fault;
  }

  async stop(): Promise<void> {
    for (const { socket } of [...this.#clients, ...this.accepted]) socket.destroy();
    await this.proxy.close();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** The request of a WebSocket client. */
export function upgrade(connectionId: string): string {
  return `GET /live/${connectionId} HTTP/1.1\r\nHost: upstream\r\n\r\n`;
}

/** A client's frame without a payload. */
export function frame(opcode: number): Buffer {
  return Buffer.from([0x80 | opcode, 0x80, 1, 2, 3, 4]);
}
