import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { WebSocket, type ClientOptions } from "ws";
import type { Cancel, Clock } from "../../shared/clock.ts";
import type { SocketEnd } from "./close-codes.ts";
import { GuardedConnect } from "./connect.ts";

export interface SocketSettings {
  readonly handshakeTimeoutMs: number;
  readonly pingIntervalMs: number;
  readonly idleTimeoutMs: number;
  readonly maxMessageBytes: number;
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
  return (url, events, mayAct) => new GuardedSocket(clock, settings, url, events, mayAct);
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

class GuardedSocket implements UpstreamSocket {
  readonly #clock: Clock;
  readonly #settings: SocketSettings;
  readonly #events: SocketEvents;
  readonly #mayAct: () => boolean;
  readonly #ws: WebSocket;
  readonly #connect: GuardedConnect;
  readonly #cancels = new Set<Cancel>();
  #lastHeardMs = 0;
  #paused = false;
  #closing = false;
  #bytesWhileClosing = 0;
  #messagesWhilePaused = 0;
  #ended = false;
  #error: string | undefined;
  #ownCode: number | undefined;
  #httpEnd: Pick<SocketEnd, "httpStatus" | "retryAfterMs"> | undefined;
  localPort: number | undefined;

  constructor(clock: Clock, settings: SocketSettings, url: string, events: SocketEvents, mayAct: () => boolean) {
    this.#clock = clock;
    this.#settings = settings;
    this.#events = events;
    this.#mayAct = mayAct;
    this.#connect = new GuardedConnect(new URL(url).protocol === "wss:", mayAct);
    const options: ClientOptions = {
      createConnection: this.#connect.createConnection as unknown as NonNullable<ClientOptions["createConnection"]>,
      // Pongs are sent below, after asking; compression costs about 230 KB a connection.
      autoPong: false,
      perMessageDeflate: false,
      followRedirects: false,
      maxPayload: settings.maxMessageBytes,
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
      // A peer that sends pings and never reads would fill our memory with answers; it may go without some.
      const unread = this.#ws.bufferedAmount > MAX_UNSENT_BYTES;
      if (!unread && this.#mayAct() && this.#ws.readyState === WebSocket.OPEN) this.#ws.pong(data);
    });
    this.#ws.on("pong", () => {
      this.#lastHeardMs = clock.monotonicMs();
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
    if (this.#ws.readyState === WebSocket.OPEN) this.#ws.pause();
  }

  resume(): void {
    this.#paused = false;
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
    // The reply, and what was sent before it, can only be read by a socket that reads.
    if (this.#ws.isPaused) this.#ws.resume();
    this.#endWithin(graceMs);
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
    this.localPort = (this.#ws as unknown as { _socket?: Socket })._socket?.localPort;
    if (this.#paused) this.#ws.pause();
    this.#watch();
    this.#events.onOpen();
  }

  #received(data: Buffer, isBinary: boolean): void {
    if (this.#ended) return;
    this.#lastHeardMs = this.#clock.monotonicMs();
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
      if (!this.#paused && idleMs >= this.#settings.idleTimeoutMs) {
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
