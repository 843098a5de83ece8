import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { SocketRecord } from "./record.ts";
import type { Transcript } from "./transcript.ts";

/** A replaying feed stops sending above this many unsent bytes … */
const HIGH_WATER_BYTES = 256 * 1024;
/** … and goes on when no more than this are left. */
const LOW_WATER_BYTES = 64 * 1024;

/** An open socket together with its record. */
export class FeedSocket {
  readonly record: SocketRecord;
  readonly ws: WebSocket;
  /** Replay only: the next segment that this socket is owed. */
  next = 0;
  nextPingAtMs: number;
  /** When it was first seen to be closing although the upstream had not asked for it. */
  closingSeenAtMs: number | undefined;
  #closedByUs = false;
  #full = false;
  readonly #stream: Duplex;

  constructor(ws: WebSocket, stream: Duplex, record: SocketRecord, nextPingAtMs: number) {
    this.ws = ws;
    this.#stream = stream;
    this.record = record;
    this.nextPingAtMs = nextPingAtMs;
  }

  get isOpen(): boolean {
    return this.ws.readyState === this.ws.OPEN;
  }

  get unsentBytes(): number {
    return this.ws.bufferedAmount;
  }

  send(segment: number, payload: string): void {
    this.ws.send(payload);
    const { record } = this;
    record.firstSegment ??= segment;
    record.firstSegment = Math.min(record.firstSegment, segment);
    record.lastSegment = Math.max(record.lastSegment ?? segment, segment);
    record.sent += 1;
  }

  /** Sends segments `next .. until-1` as far as the reader keeps up; the rest waits for the next call. */
  sendUntil(until: number, transcript: Transcript): void {
    if (this.next >= until || !this.isOpen) return;
    if (this.#full && this.unsentBytes > LOW_WATER_BYTES) return;
    this.#full = false;
    // A burst goes out in a few large writes instead of one system call for each frame.
    this.#stream.cork();
    while (this.next < until && !this.#full) {
      this.send(this.next, transcript.payloadAt(this.next));
      this.next += 1;
      this.#full = this.unsentBytes > HIGH_WATER_BYTES;
    }
    this.#stream.uncork();
  }

  noteClosing(nowMs: number): void {
    if (this.#closedByUs || this.closingSeenAtMs !== undefined) return;
    if (this.ws.readyState === this.ws.CLOSING) this.closingSeenAtMs = nowMs;
  }

  close(code: number): void {
    this.#closedByUs = true;
    this.ws.close(code);
  }

  cut(reason: "slow" | "fault"): void {
    this.#closedByUs = true;
    this.record.cut ??= reason;
    this.ws.terminate();
  }
}
