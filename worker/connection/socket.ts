import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { WebSocket } from "ws";
import type { Cancel, Clock } from "../../shared/clock.ts";
import type { SocketEnd } from "./close-codes.ts";

export interface SocketSettings {
  readonly handshakeTimeoutMs: number;
  readonly pingIntervalMs: number;
  readonly idleTimeoutMs: number;
  readonly maxMessageBytes: number;
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

/**
 * A `ws` client that sends nothing by itself: pongs and pings ask `mayAct` first, since a peer must never hear from an
 * owner whose deadline has passed.
 */
export function dialer(clock: Clock, settings: SocketSettings): Dial {
  return (url, events, mayAct) => new GuardedSocket(clock, settings, url, events, mayAct);
}

class GuardedSocket implements UpstreamSocket {
  readonly #clock: Clock;
  readonly #settings: SocketSettings;
  readonly #events: SocketEvents;
  readonly #mayAct: () => boolean;
  readonly #ws: WebSocket;
  readonly #cancels = new Set<Cancel>();
  #lastHeardMs = 0;
  #paused = false;
  #ended = false;
  #error: string | undefined;
  #httpEnd: Pick<SocketEnd, "httpStatus" | "retryAfterMs"> | undefined;
  localPort: number | undefined;

  constructor(clock: Clock, settings: SocketSettings, url: string, events: SocketEvents, mayAct: () => boolean) {
    this.#clock = clock;
    this.#settings = settings;
    this.#events = events;
    this.#mayAct = mayAct;
    this.#ws = new WebSocket(url, {
      // Pongs are sent below, after asking; compression costs about 230 KB a connection.
      autoPong: false,
      perMessageDeflate: false,
      followRedirects: false,
      maxPayload: settings.maxMessageBytes,
      skipUTF8Validation: false,
    });
    this.#after(settings.handshakeTimeoutMs, () => {
      if (this.#ws.readyState === WebSocket.CONNECTING) this.#fail("handshake timeout");
    });
    this.#ws.on("open", () => this.#opened());
    this.#ws.on("message", (data: Buffer, isBinary) => this.#received(data, isBinary));
    this.#ws.on("ping", (data: Buffer) => {
      this.#lastHeardMs = clock.monotonicMs();
      if (this.#mayAct() && this.#ws.readyState === WebSocket.OPEN) this.#ws.pong(data);
    });
    this.#ws.on("pong", () => {
      this.#lastHeardMs = clock.monotonicMs();
    });
    this.#ws.on("error", (error) => {
      this.#error ??= error.message;
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
        code,
        reason: reason.toString(),
        ...(this.#error === undefined ? {} : { error: this.#error }),
        ...this.#httpEnd,
      });
    });
  }

  pause(): void {
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
    if (this.#ws.readyState !== WebSocket.OPEN) {
      this.terminate();
      return;
    }
    // The reply, and what was sent before it, can only be read by a socket that reads.
    if (this.#ws.isPaused) this.#ws.resume();
    this.#ws.close(1000);
    this.#after(graceMs, () => this.terminate());
  }

  terminate(): void {
    if (this.#ended) return;
    this.#ws.terminate();
    this.#end({ code: 1006, error: this.#error ?? "terminated" });
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
