/** `replay`: positioned, gives everything after a cursor again. `live`: spoken once, to whoever listens. */
export type FeedKind = "replay" | "live";

export interface TranscriptParts {
  readonly connectionId: string;
  readonly index: number;
  readonly kind: FeedKind;
  /** Time between two segments. */
  readonly intervalMs: number;
  /** Time from the connection's first open to its first segment. */
  readonly phaseMs: number;
  readonly firstPosition: bigint;
  /** Distance of every segment's position from the first; absent: they rise by one. */
  readonly offsets: Uint32Array | undefined;
  /** `"speaker":…,"year":…,"text":…` of every segment. */
  readonly bodies: readonly string[];
}

/**
 * What one connection says, segment by segment (numbered from 0).
 *
 * A payload is `{"seq":<position>,"speaker":…,"year":…,"text":…,"last":true?}`; on a live feed `"n"`, counting from 1,
 * stands in place of `seq`. The position is written digit by digit: a detour over a float would round it.
 */
export class Transcript {
  readonly connectionId: string;
  readonly index: number;
  readonly kind: FeedKind;
  readonly intervalMs: number;
  readonly phaseMs: number;
  readonly length: number;
  readonly #parts: TranscriptParts;

  constructor(parts: TranscriptParts) {
    this.#parts = parts;
    this.connectionId = parts.connectionId;
    this.index = parts.index;
    this.kind = parts.kind;
    this.intervalMs = parts.intervalMs;
    this.phaseMs = parts.phaseMs;
    this.length = parts.bodies.length;
  }

  positionAt(segment: number): bigint {
    return this.#parts.firstPosition + BigInt(this.#offset(segment));
  }

  payloadAt(segment: number): string {
    const body = this.#parts.bodies[segment];
    if (body === undefined) throw this.#outside(segment);
    const key = this.kind === "live" ? "n" : "seq";
    const last = segment === this.length - 1 ? ',"last":true' : "";
    return `{"${key}":${this.positionAt(segment).toString()},${body}${last}}`;
  }

  /** The first segment whose position is greater than the cursor; `length` when there is none. */
  firstAfter(cursor: bigint): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.positionAt(middle) > cursor) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The segment with exactly this position. */
  segmentAt(position: bigint): number | undefined {
    const segment = this.firstAfter(position - 1n);
    return segment < this.length && this.positionAt(segment) === position ? segment : undefined;
  }

  /** How many segments are due when the connection was first opened `elapsedMs` ago. */
  dueAfter(elapsedMs: number): number {
    const due = Math.floor((elapsedMs - this.phaseMs) / this.intervalMs) + 1;
    return Math.min(this.length, Math.max(0, due));
  }

  #offset(segment: number): number {
    const { offsets } = this.#parts;
    const offset = offsets === undefined ? segment : offsets[segment];
    if (offset === undefined || segment < 0 || segment >= this.length) throw this.#outside(segment);
    return offset;
  }

  #outside(segment: number): RangeError {
    return new RangeError(`segment must be from 0 to ${this.length - 1}, got ${segment} (${this.connectionId})`);
  }
}
