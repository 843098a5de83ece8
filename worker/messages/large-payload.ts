import { createHash, type Hash } from "node:crypto";
import { PART_BYTES } from "./limits.ts";

const encoder = new TextEncoder();

/**
 * Cuts one payload into parts of at most {@link PART_BYTES} without ever holding a second copy of the whole: parts of
 * binary are views, parts of text are encoded when they are sent. The hash grows with the parts, so that no single step
 * of the event loop works through the whole message.
 */
export class LargePayload {
  readonly #payload: string | Uint8Array;
  readonly #hash: Hash = createHash("sha256");
  /** Where each part ends, in bytes of binary or UTF-16 units of text. */
  readonly #ends: number[] = [];
  #sha256: string | undefined;

  constructor(payload: string | Uint8Array) {
    this.#payload = payload;
  }

  /** Parts that were handed out so far. */
  get count(): number {
    return this.#ends.length;
  }

  /** Every byte is in one of the parts handed out. */
  get complete(): boolean {
    return this.#end === this.#payload.length;
  }

  /** The next part's number, from 1. */
  next(): number {
    const { bytes, end } = this.#cut(this.#end);
    this.#hash.update(bytes);
    this.#ends.push(end);
    return this.#ends.length;
  }

  /** The bytes of a part that was handed out; the same bytes every time. */
  bytes(part: number): Uint8Array {
    return this.#cut(part === 1 ? 0 : (this.#ends[part - 2] ?? 0)).bytes;
  }

  /** Hex, over the whole payload's bytes. Only when complete. */
  sha256(): string {
    this.#sha256 ??= this.#hash.digest("hex");
    return this.#sha256;
  }

  get #end(): number {
    return this.#ends.at(-1) ?? 0;
  }

  #cut(start: number): { bytes: Uint8Array; end: number } {
    if (typeof this.#payload !== "string") {
      const end = Math.min(start + PART_BYTES, this.#payload.length);
      return { bytes: this.#payload.subarray(start, end), end };
    }
    // A unit of text takes at least one byte, so a part never needs more units than bytes. Where that slice cuts a
    // surrogate pair, the half at its end does not fit into the target any more and is left to the next part.
    const target = new Uint8Array(PART_BYTES);
    const { read, written } = encoder.encodeInto(this.#payload.slice(start, start + PART_BYTES), target);
    return { bytes: target.subarray(0, written), end: start + read };
  }
}
