import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { WebSocketServer, type WebSocket } from "ws";

export interface UpstreamOptions {
  /** From the request of a handshake to its answer: what makes handshakes overlap. */
  readonly handshakeMs?: number;
  /** Called with each opened socket and the position that its client resumes behind. */
  readonly onOpen?: (socket: WebSocket, connectionId: string, after: number) => void;
}

/** A thousand sockets may be dialled at once. */
const BACKLOG = 4096;

/** A WebSocket server that counts what a herd does to it. Connections are told apart by the path. */
export class CountingUpstream {
  /** When each handshake was asked for, monotonic ms. */
  readonly dialsMs: number[] = [];
  /** When each connection was open for the first time. */
  readonly openedMs = new Map<string, number>();
  mostAtOnce = 0;
  readonly #open = new Map<string, Set<WebSocket>>();
  readonly #server = createServer((_request, response) => response.writeHead(426).end());
  readonly #wss = new WebSocketServer({ noServer: true, perMessageDeflate: false, clientTracking: false });
  readonly #options: UpstreamOptions;
  readonly #handshakes = new Set<Socket>();

  private constructor(options: UpstreamOptions) {
    this.#options = options;
    this.#server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
      this.dialsMs.push(performance.now());
      this.#handshakes.add(socket);
      this.mostAtOnce = Math.max(this.mostAtOnce, this.#handshakes.size);
      socket.on("error", () => undefined);
      socket.once("close", () => this.#handshakes.delete(socket));
      setTimeout(() => {
        this.#handshakes.delete(socket);
        if (!socket.destroyed) this.#answer(request, socket, head);
      }, options.handshakeMs ?? 0);
    });
  }

  static async start(options: UpstreamOptions = {}): Promise<CountingUpstream> {
    const upstream = new CountingUpstream(options);
    upstream.#server.listen({ host: "127.0.0.1", port: 0, backlog: BACKLOG });
    await once(upstream.#server, "listening");
    return upstream;
  }

  /** Resumes behind the position that is filled in. */
  urlOf(connectionId: string): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${connectionId}?after={cursor}`;
  }

  /** Connections with an open socket. */
  get open(): number {
    return this.#open.size;
  }

  /** Connections with more than one. */
  get doubled(): number {
    return [...this.#open.values()].filter((sockets) => sockets.size > 1).length;
  }

  /** Most dials in any span of this length, from the n-th on. */
  mostDialsWithin(spanMs: number, from = 0): number {
    let most = 0;
    let first = from;
    for (let last = from; last < this.dialsMs.length; last++) {
      while ((this.dialsMs[last] ?? 0) - (this.dialsMs[first] ?? 0) > spanMs) first++;
      most = Math.max(most, last - first + 1);
    }
    return most;
  }

  async stop(): Promise<void> {
    for (const sockets of this.#open.values()) for (const socket of sockets) socket.terminate();
    for (const socket of this.#handshakes) socket.destroy();
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #answer(request: IncomingMessage, socket: Socket, head: Buffer): void {
    this.#wss.handleUpgrade(request, socket, head, (ws) => {
      const url = new URL(request.url ?? "/", "ws://upstream");
      const connectionId = url.pathname.slice(1);
      const sockets = this.#open.get(connectionId) ?? new Set();
      this.#open.set(connectionId, sockets.add(ws));
      if (!this.openedMs.has(connectionId)) this.openedMs.set(connectionId, performance.now());
      ws.on("error", () => undefined);
      ws.on("close", () => {
        sockets.delete(ws);
        if (sockets.size === 0) this.#open.delete(connectionId);
      });
      this.#options.onOpen?.(ws, connectionId, Number(url.searchParams.get("after") ?? 0));
    });
  }
}
