import type { FeedSocket } from "./feed-socket.ts";
import type { ConnectionRecord, SocketRecord, SpokenSegment } from "./record.ts";
import type { Transcript } from "./transcript.ts";

/** A live feed cuts a reader that lets this much pile up: it can neither wait for it nor buffer without end. */
const LIVE_LIMIT_BYTES = 8 * 1024 * 1024;

/**
 * One connection's feed. Its schedule starts with its first open and never stops or shifts:
 * segment `k` is due at `startedAtMs + phaseMs + k * intervalMs`. Several sockets at once are all served.
 */
export abstract class Feed {
  readonly transcript: Transcript;
  readonly sockets = new Set<FeedSocket>();
  protected readonly records: SocketRecord[] = [];
  protected startedAtMs: number | null = null;

  constructor(transcript: Transcript) {
    this.transcript = transcript;
  }

  /** Segments reached: sent to somebody (replay) or spoken (live). */
  abstract readonly sent: number;
  abstract readonly missed: number;
  abstract advance(nowMs: number): void;
  protected abstract spokenSegments(): readonly SpokenSegment[];

  get started(): boolean {
    return this.startedAtMs !== null;
  }

  get complete(): boolean {
    return this.sent >= this.transcript.length;
  }

  open(socket: FeedSocket, nowMs: number): void {
    this.startedAtMs ??= nowMs;
    this.sockets.add(socket);
    this.records.push(socket.record);
  }

  drop(socket: FeedSocket): void {
    this.sockets.delete(socket);
  }

  record(): ConnectionRecord {
    return {
      connectionId: this.transcript.connectionId,
      kind: this.transcript.kind,
      segments: this.transcript.length,
      startedAtMs: this.startedAtMs,
      sent: this.sent,
      sockets: this.records,
      spoken: this.spokenSegments(),
    };
  }

  protected dueAt(nowMs: number): number {
    return this.startedAtMs === null ? 0 : this.transcript.dueAfter(nowMs - this.startedAtMs);
  }
}

/** Owes every socket all segments behind its cursor; a slow reader is waited for. */
export class ReplayFeed extends Feed {
  readonly missed = 0;
  #sent = 0;

  get sent(): number {
    return this.#sent;
  }

  advance(nowMs: number): void {
    const due = this.dueAt(nowMs);
    for (const socket of this.sockets) {
      if (socket.next >= due) continue;
      socket.sendUntil(due, this.transcript);
      if (socket.record.sent > 0 && socket.next > this.#sent) this.#sent = socket.next;
    }
  }

  protected spokenSegments(): readonly SpokenSegment[] {
    return [];
  }
}

/** Speaks each segment once, when it is due, to the sockets that are open at that moment. */
export class LiveFeed extends Feed {
  readonly #spoken: SpokenSegment[] = [];
  #missed = 0;

  get sent(): number {
    return this.#spoken.length;
  }

  get missed(): number {
    return this.#missed;
  }

  advance(nowMs: number): void {
    const due = this.dueAt(nowMs);
    while (this.#spoken.length < due) this.#speak(nowMs);
  }

  protected spokenSegments(): readonly SpokenSegment[] {
    return this.#spoken;
  }

  #speak(nowMs: number): void {
    const segment = this.#spoken.length;
    const payload = this.transcript.payloadAt(segment);
    const sockets: number[] = [];
    for (const socket of this.sockets) {
      if (socket.isOpen && socket.unsentBytes > LIVE_LIMIT_BYTES) socket.cut("slow");
      if (!socket.isOpen) continue;
      socket.send(segment, payload);
      sockets.push(socket.record.socket);
    }
    if (sockets.length === 0) this.#missed += 1;
    this.#spoken.push({ atMs: nowMs, sockets });
  }
}

export function feedFor(transcript: Transcript): Feed {
  return transcript.kind === "live" ? new LiveFeed(transcript) : new ReplayFeed(transcript);
}
