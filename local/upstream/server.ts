import { createServer } from "node:http";
import type { IncomingMessage, Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { WebSocket } from "ws";
import type { Clock } from "../../shared/clock.ts";
import type { Corpus } from "./corpus.ts";
import { FeedSocket } from "./feed-socket.ts";
import { feedFor } from "./feeds.ts";
import type { Feed } from "./feeds.ts";
import type { SocketEvent, UpstreamConfig, UpstreamStatus } from "./protocol.ts";
import type { ConnectionRecord, InboundKind, SocketRecord } from "./record.ts";
import { parseRequest, refuseUpgrade } from "./upgrade.ts";
import type { FeedRequest } from "./upgrade.ts";

const TICK_MS = 10;
const DEFAULT_PING_MS = 5000;
/** A whole fleet dials at once after an outage. */
const BACKLOG = 4096;
const MAX_INBOUND_BYTES = 64 * 1024;

export interface UpstreamServerDeps {
  /** Common to all processes of the host, so that records of several of them can be laid side by side. */
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly onEvent: (event: SocketEvent) => void;
}

/**
 * The WebSocket server that speaks a corpus. One tick serves all feeds: sends what is due, lets slow readers of
 * replaying feeds catch up, pings. Any number of sockets may be open to one connection id: two owners at once are
 * what the audit wants to see, so the upstream must not hide them.
 */
export class UpstreamServer {
  readonly #deps: UpstreamServerDeps;
  readonly #http: Server = createServer((_request, response) => response.writeHead(426).end());
  readonly #wss = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    clientTracking: false,
    // A stalled upstream must not answer pings, so it answers them itself.
    autoPong: false,
    maxPayload: MAX_INBOUND_BYTES,
  });
  readonly #sockets = new Set<FeedSocket>();
  #feeds = new Map<string, Feed>();
  #config: UpstreamConfig | undefined;
  #tick: NodeJS.Timeout | undefined;
  #lastSocket = 0;
  #framesSent = 0;
  #refused = 0;
  #refuse = { untilMs: -Infinity, status: 503 };
  #stalledUntilMs = -Infinity;

  constructor(deps: UpstreamServerDeps) {
    this.#deps = deps;
    this.#http.on("upgrade", (request: IncomingMessage, stream: Duplex, head: Buffer) => {
      this.#upgrade(request, stream, head);
    });
  }

  /** @returns the port on 127.0.0.1 */
  async listen(): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#http.once("error", reject);
      this.#http.listen({ host: "127.0.0.1", port: 0, backlog: BACKLOG }, resolve);
    });
    this.#tick = setInterval(() => this.#onTick(), TICK_MS);
    return (this.#http.address() as AddressInfo).port;
  }

  /** @throws while sockets are open: their records belong to the run before */
  configure(config: UpstreamConfig, corpus: Corpus): void {
    if (this.#sockets.size > 0) throw new Error(`${this.#sockets.size} sockets are open; close them first`);
    if (config.pingMs !== undefined && !(config.pingMs > 0)) throw new RangeError("pingMs must be greater than 0");
    this.#config = config;
    this.#feeds = new Map(corpus.transcripts.map((transcript) => [transcript.connectionId, feedFor(transcript)]));
    this.#framesSent = 0;
    this.#refused = 0;
  }

  get config(): UpstreamConfig | undefined {
    return this.#config;
  }

  status(): UpstreamStatus {
    const feeds = [...this.#feeds.values()];
    const open = [...this.#sockets].reduce((sum, socket) => sum + socket.record.sent, 0);
    return {
      openSockets: this.#sockets.size,
      started: feeds.filter((feed) => feed.started).length,
      complete: feeds.filter((feed) => feed.complete).length,
      framesSent: this.#framesSent + open,
      segmentsSent: feeds.reduce((sum, feed) => sum + feed.sent, 0),
      missed: feeds.reduce((sum, feed) => sum + feed.missed, 0),
      refused: this.#refused,
    };
  }

  *records(): Generator<ConnectionRecord> {
    for (const feed of this.#feeds.values()) yield feed.record();
  }

  refuse(ms: number, status: number): void {
    this.#refuse = { untilMs: this.#deps.clock.monotonicMs() + ms, status };
  }

  stall(ms: number): void {
    this.#stalledUntilMs = this.#deps.clock.monotonicMs() + ms;
  }

  terminate(connectionIds: readonly string[] | undefined): number {
    const wanted = connectionIds === undefined ? undefined : new Set(connectionIds);
    const targets = [...this.#sockets].filter((socket) => wanted?.has(socket.record.connectionId) ?? true);
    for (const socket of targets) socket.cut("fault");
    return targets.length;
  }

  async closeAll(code: number): Promise<number> {
    const targets = [...this.#sockets];
    await Promise.all(
      targets.map(async (socket) => {
        const gone = new Promise<void>((resolve) => socket.ws.once("close", resolve));
        socket.close(code);
        await gone;
      }),
    );
    return targets.length;
  }

  async stop(): Promise<void> {
    clearInterval(this.#tick);
    for (const socket of this.#sockets) socket.cut("fault");
    await new Promise<void>((resolve) => this.#http.close(() => resolve()));
  }

  #onTick(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const socket of this.#sockets) socket.noteClosing(nowMs);
    if (nowMs < this.#stalledUntilMs) return;
    for (const feed of this.#feeds.values()) if (!feed.complete || feed.sockets.size > 0) feed.advance(nowMs);
    for (const socket of this.#sockets) {
      if (nowMs < socket.nextPingAtMs || !socket.isOpen) continue;
      socket.nextPingAtMs = nowMs + this.#pingMs;
      socket.ws.ping();
    }
  }

  get #pingMs(): number {
    return this.#config?.pingMs ?? DEFAULT_PING_MS;
  }

  #upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    if (this.#deps.clock.monotonicMs() < this.#refuse.untilMs) {
      this.#refused += 1;
      refuseUpgrade(stream, this.#refuse.status);
      return;
    }
    const asked = parseRequest(request);
    if ("status" in asked) {
      refuseUpgrade(stream, asked.status);
      return;
    }
    const feed = this.#feeds.get(asked.connectionId);
    const { remotePort } = request.socket;
    if (feed?.transcript.kind !== asked.kind) refuseUpgrade(stream, 404);
    // Without a port the peer is already gone.
    else if (remotePort === undefined) stream.destroy();
    else this.#wss.handleUpgrade(request, stream, head, (ws) => this.#open(ws, stream, remotePort, feed, asked));
  }

  #open(ws: WebSocket, stream: Duplex, remotePort: number, feed: Feed, asked: FeedRequest): void {
    const nowMs = this.#deps.clock.monotonicMs();
    const { connectionId } = asked;
    const record: SocketRecord = {
      socket: (this.#lastSocket += 1),
      connectionId,
      remotePort,
      openedAtMs: nowMs,
      closedAtMs: null,
      closeCode: null,
      cut: null,
      firstSegment: null,
      lastSegment: null,
      sent: 0,
      frames: [],
    };
    const socket = new FeedSocket(ws, stream, record, nowMs + this.#pingMs);
    if (asked.kind === "replay" && asked.cursor !== undefined) {
      const inclusive = this.#config?.cursor === "inclusive";
      socket.next = feed.transcript.firstAfter(inclusive ? asked.cursor - 1n : asked.cursor);
    }
    this.#listen(socket, feed);
    this.#sockets.add(socket);
    feed.open(socket, nowMs);
    this.#deps.onEvent({ kind: "opened", connectionId, atMs: nowMs, remotePort, socket: record.socket });
    if (nowMs >= this.#stalledUntilMs) feed.advance(nowMs);
  }

  #listen(socket: FeedSocket, feed: Feed): void {
    const { ws, record } = socket;
    const note = (kind: InboundKind, atMs = this.#deps.clock.monotonicMs()): void =>
      void record.frames.push({ kind, atMs });
    ws.on("message", (_data, isBinary) => note(isBinary ? "binary" : "text"));
    ws.on("pong", () => note("pong"));
    ws.on("ping", (data) => {
      note("ping");
      if (socket.isOpen && this.#deps.clock.monotonicMs() >= this.#stalledUntilMs) ws.pong(data);
    });
    // A reset or a protocol error is always followed by "close", which is what gets recorded.
    ws.on("error", () => undefined);
    ws.on("close", (code) => {
      const atMs = this.#deps.clock.monotonicMs();
      // `ws` tells of a close frame only when the TCP connection has ended as well; the frame came when closing was seen.
      if (code !== 1006) note("close", socket.closingSeenAtMs ?? atMs);
      record.closedAtMs = atMs;
      record.closeCode = code;
      this.#sockets.delete(socket);
      this.#framesSent += record.sent;
      feed.drop(socket);
      const { connectionId, remotePort } = record;
      this.#deps.onEvent({ kind: "closed", connectionId, atMs, remotePort, socket: record.socket, code });
    });
  }
}
