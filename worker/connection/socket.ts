import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { WebSocket, type ClientOptions } from "ws";
import type { Cancel, Clock } from "../../shared/clock.ts";
import type { SocketEnd } from "./close-codes.ts";
import { GuardedConnect } from "./connect.ts";
import { UnfinishedMessages, type Receiving } from "./unfinished.ts";

export interface SocketSettings {
  readonly handshakeTimeoutMs: number;
  readonly pingIntervalMs: number;
  readonly idleTimeoutMs: number;
  readonly maxMessageBytes: number;
  /** Of all sockets together: bytes of messages whose end has not come. */
  readonly unfinishedMaxBytes: number;
  /** How long a peer that began or was asked to close may take for its part. */
  readonly closeGraceMs: number;
}

export interface SocketEvents {
  onOpen(): void;
  /** Text as a string; binary as bytes of its own. */
  onMessage(payload: string | Uint8Array): void;
  /** Once, after which nothing more comes. */
  onEnd(end: SocketEnd): void;
}

/** What a connection needs of a socket: real here, simulated in the simulation. */
export interface UpstreamSocket {
  /** Stops reading, so that TCP slows the sender down. */
  pause(): void;
  resume(): void;
  /** Sends a close and goes on delivering what is on its way, until the reply comes or `graceMs` is over. */
  close(graceMs: number): void;
  /** Ends it at once; nothing is sent any more. */
  terminate(): void;
  /** Local TCP port once open: how an audit tells which socket was whose. */
  readonly localPort: number | undefined;
}

/** The one way a worker reaches an upstream; a later guard on where it may connect belongs in front of it. */
export type Dial = (url: string, events: SocketEvents, mayAct: () => boolean) => UpstreamSocket;

/** `ws` itself reports 1006 where we refuse a message; these are the codes that the peer is told. */
const OWN_CODES: Readonly<Record<string, number>> = {
  WS_ERR_INVALID_UTF8: 1007,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009,
};

/**
 * A `ws` client that sends nothing by itself: pongs, pings and closes ask `mayAct` first, since a peer must never hear
 * from an owner whose deadline has passed.
 */
export function dialer(clock: Clock, settings: SocketSettings): Dial {
  const { unfinishedMaxBytes, idleTimeoutMs } = settings;
  const unfinished = new UnfinishedMessages(clock, { maxBytes: unfinishedMaxBytes, patienceMs: idleTimeoutMs });
  return (url, events, mayAct) => new GuardedSocket(clock, settings, unfinished, url, events, mayAct);
}

/** `ws` answers a close, and complains about a bad frame, through its own `close`: here both are asked about first. */
class AskingWebSocket extends WebSocket {
  readonly #mayClose: () => boolean;

  constructor(url: string, options: ClientOptions, mayClose: () => boolean) {
    super(url, options);
    this.#mayClose = mayClose;
  }

  override close(code?: number, data?: string | Buffer): void {
    if (this.#mayClose()) super.close(code, data);
    else this.terminate();
  }
}

/** Pongs are not queued beyond this. */
const MAX_UNSENT_BYTES = 65_536;
/**
 * `ws` works through the network chunk it has even when paused: at 64 KB a chunk, only frames of a few bytes can be more
 * than this. Such a flood is ended, since nothing else would bound what it leaves in memory.
 */
const MAX_MESSAGES_WHILE_PAUSED = 4096;
/** Each part of a message costs about 200 bytes beside its own; shorter ones than this on average are refused. */
const MIN_MEAN_PART_BYTES = 256;
const MIN_PARTS = 1024;
/** Of a ping or pong. */
const CONTROL_HEADER_BYTES = 2;

class GuardedSocket implements UpstreamSocket, Receiving {
  readonly #clock: Clock;
  readonly #settings: SocketSettings;
  readonly #unfinished: UnfinishedMessages;
  readonly #events: SocketEvents;
  readonly #mayAct: () => boolean;
  readonly #ws: WebSocket;
  readonly #connect: GuardedConnect;
  readonly #cancels = new Set<Cancel>();
  #lastHeardMs = 0;
  /** By the writer, which is full. */
  #paused = false;
  /** For want of memory for unfinished messages. */
  #held = false;
  #unfinishedBytes = 0;
  #controlBytes = 0;
  #messageEnded = false;
  #closing = false;
  #bytesWhileClosing = 0;
  #messagesWhilePaused = 0;
  #ended = false;
  #error: string | undefined;
  #ownCode: number | undefined;
  #httpEnd: Pick<SocketEnd, "httpStatus" | "retryAfterMs"> | undefined;
  localPort: number | undefined;

  constructor(
    clock: Clock,
    settings: SocketSettings,
    unfinished: UnfinishedMessages,
    url: string,
    events: SocketEvents,
    mayAct: () => boolean,
  ) {
    this.#clock = clock;
    this.#settings = settings;
    this.#unfinished = unfinished;
    this.#events = events;
    this.#mayAct = mayAct;
    this.#connect = new GuardedConnect(new URL(url).protocol === "wss:", mayAct);
    const maxParts = Math.max(MIN_PARTS, Math.ceil(settings.maxMessageBytes / MIN_MEAN_PART_BYTES));
    const options: ClientOptions = {
      createConnection: this.#connect.createConnection as unknown as NonNullable<ClientOptions["createConnection"]>,
      // Pongs are sent below, after asking; compression costs about 230 KB a connection.
      autoPong: false,
      perMessageDeflate: false,
      followRedirects: false,
      maxPayload: settings.maxMessageBytes,
      maxFragments: maxParts,
      maxBufferedChunks: maxParts,
      skipUTF8Validation: false,
    };
    this.#ws = new AskingWebSocket(url, options, () => this.#mayClose());
    this.#after(settings.handshakeTimeoutMs, () => {
      if (this.#ws.readyState === WebSocket.CONNECTING) this.#fail("handshake timeout");
    });
    this.#ws.on("open", () => this.#opened());
    this.#ws.on("message", (data: Buffer, isBinary) => this.#received(data, isBinary));
    this.#ws.on("ping", (data: Buffer) => {
      this.#lastHeardMs = clock.monotonicMs();
      this.#controlBytes += data.length + CONTROL_HEADER_BYTES;
      // A peer that sends pings and never reads would fill our memory with answers; it may go without some.
      const unread = this.#ws.bufferedAmount > MAX_UNSENT_BYTES;
      if (!unread && this.#mayAct() && this.#ws.readyState === WebSocket.OPEN) this.#ws.pong(data);
    });
    this.#ws.on("pong", (data: Buffer) => {
      this.#lastHeardMs = clock.monotonicMs();
      this.#controlBytes += data.length + CONTROL_HEADER_BYTES;
    });
    this.#ws.on("error", (error: NodeJS.ErrnoException) => {
      this.#error ??= error.message;
      this.#ownCode ??= OWN_CODES[error.code ?? ""];
    });
    this.#ws.on("unexpected-response", (request, response: IncomingMessage) => {
      this.#httpEnd = { httpStatus: response.statusCode ?? 0, ...retryAfter(response, clock.wallMs()) };
      request.destroy();
      response.destroy();
      // With this listener `ws` leaves the clean-up to us.
      this.#ws.terminate();
      this.#end({ ...this.#httpEnd });
    });
    this.#ws.on("close", (code, reason: Buffer) => {
      this.#end({
        code: this.#ownCode ?? code,
        reason: reason.toString(),
        ...(this.#error === undefined ? {} : { error: this.#error }),
        ...this.#httpEnd,
      });
    });
  }

  pause(): void {
    if (!this.#paused) this.#messagesWhilePaused = 0;
    this.#paused = true;
    this.#readOrNot();
  }

  resume(): void {
    this.#paused = false;
    this.#readOrNot();
  }

  hold(): void {
    if (this.#closing) {
      this.#fail("goes on sending while it is closed");
      return;
    }
    this.#held = true;
    this.#readOrNot();
  }

  letGo(): void {
    this.#held = false;
    this.#readOrNot();
  }

  giveUp(): void {
    this.#fail("a message does not end, while others wait for the memory it takes");
  }

  #readOrNot(): void {
    // A closing socket reads: the reply, and what was sent before it.
    const read = this.#closing || !(this.#paused || this.#held);
    if (!read) {
      if (this.#ws.readyState === WebSocket.OPEN) this.#ws.pause();
      return;
    }
    // A paused socket heard nothing because it did not listen: the idle time starts anew.
    this.#lastHeardMs = this.#clock.monotonicMs();
    if (this.#ws.isPaused) this.#ws.resume();
  }

  close(graceMs: number): void {
    if (this.#ended) return;
    if (this.#ws.readyState === WebSocket.CONNECTING) {
      this.terminate();
      return;
    }
    this.#endWithin(graceMs);
    this.#readOrNot();
    this.#ws.close(1000);
  }

  terminate(): void {
    if (this.#ended) return;
    this.#ws.terminate();
    this.#end({ code: 1006, error: this.#error ?? "terminated" });
  }

  #mayClose(): boolean {
    if (!this.#mayAct()) return false;
    this.#endWithin(this.#settings.closeGraceMs);
    return true;
  }

  /** One grace per socket, whichever side began: the peer may answer late, not at all, or never end the connection. */
  #endWithin(graceMs: number): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#after(graceMs, () => this.#ws.terminate());
  }

  #opened(): void {
    this.#lastHeardMs = this.#clock.monotonicMs();
    const socket = (this.#ws as unknown as { _socket?: Socket })._socket;
    this.localPort = socket?.localPort;
    // Behind the listener of `ws`, which has worked through the chunk by then.
    socket?.on("data", (chunk: Buffer) => this.#count(chunk.length));
    this.#readOrNot();
    this.#watch();
    this.#events.onOpen();
  }

  /** Keeps, from above, what has come of a message that has not ended. */
  #count(chunkBytes: number): void {
    if (this.#ended) return;
    this.#unfinishedBytes = this.#messageEnded
      ? chunkBytes
      : Math.max(0, this.#unfinishedBytes + chunkBytes - this.#controlBytes);
    this.#messageEnded = false;
    this.#controlBytes = 0;
    this.#unfinished.note(this, this.#unfinishedBytes);
  }

  #received(data: Buffer, isBinary: boolean): void {
    if (this.#ended) return;
    this.#lastHeardMs = this.#clock.monotonicMs();
    this.#messageEnded = true;
    if (this.#paused && ++this.#messagesWhilePaused > MAX_MESSAGES_WHILE_PAUSED) {
      this.#fail("sends faster than can be stored");
      return;
    }
    // A closing socket cannot be paused: what it may still bring is bounded here.
    if (this.#closing) this.#bytesWhileClosing += data.length;
    if (this.#bytesWhileClosing > this.#settings.maxMessageBytes) {
      this.#fail("goes on sending while it is closed");
      return;
    }
    // `ws` may hand out a view into a larger network chunk: queued as it is, a short message would keep all of it alive.
    this.#events.onMessage(isBinary ? new Uint8Array(data) : data.toString("utf8"));
  }

  /** Half-open sockets: ping, and give up on a peer from which nothing at all was heard for too long. */
  #watch(): void {
    this.#after(this.#settings.pingIntervalMs, () => {
      if (this.#ended) return;
      const idleMs = this.#clock.monotonicMs() - this.#lastHeardMs;
      if (!this.#ws.isPaused && idleMs >= this.#settings.idleTimeoutMs) {
        this.#fail(`nothing received for ${Math.round(idleMs)} ms`);
        return;
      }
      if (this.#mayAct() && this.#ws.readyState === WebSocket.OPEN) this.#ws.ping();
      this.#watch();
    });
  }

  #fail(error: string): void {
    this.#error ??= error;
    this.#ws.terminate();
    this.#end({ error });
  }

  #end(end: SocketEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#connect.abort();
    this.#unfinished.note(this, 0);
    for (const cancel of this.#cancels) cancel();
    this.#cancels.clear();
    this.#events.onEnd(end);
  }

  #after(delayMs: number, fn: () => void): void {
    const cancel = this.#clock.after(delayMs, () => {
      this.#cancels.delete(cancel);
      fn();
    });
    this.#cancels.add(cancel);
  }
}

/** Retry-After in seconds or as a date, in milliseconds from now. */
function retryAfter(response: IncomingMessage, wallMs: number): { retryAfterMs?: number } {
  const header = response.headers["retry-after"];
  if (header === undefined) return {};
  const delayMs = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - wallMs;
  return Number.isFinite(delayMs) && delayMs > 0 ? { retryAfterMs: delayMs } : {};
}
