import { parseSeq } from "../../shared/connection/upstream-settings.ts";
import { numberSource } from "./number-source.ts";

/** A cursor travels in every renewal and in a URL. One beyond this, or of broken characters, would make renewals fail. */
const MAX_CURSOR_LENGTH = 2048;

/** Reads the position out of a message. Compiled once per connection from an RFC 6901 pointer. */
export class PositionReader {
  readonly #path: readonly string[];

  constructor(pointer: string) {
    this.#path =
      pointer === ""
        ? []
        : pointer
            .slice(1)
            .split("/")
            .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
  }

  /** A rising integer, exact beyond 2^53; undefined when the message has none. */
  sequence(text: string): bigint | undefined {
    const value = this.#read(text);
    if (typeof value === "string") return parseSeq(value);
    if (typeof value !== "number" || !Number.isInteger(value)) return undefined;
    // A double may already be rounded: only then the digits are read from the text itself.
    return parseSeq(Number.isSafeInteger(value) ? String(value) : (numberSource(text, this.#path) ?? ""));
  }

  /** An opaque cursor, given back as it came; undefined when the message has none that could be stored. */
  cursor(text: string): string | undefined {
    const value = this.#read(text);
    const cursor = typeof value === "number" ? this.#digits(text, value) : value;
    return typeof cursor === "string" && cursor.length <= MAX_CURSOR_LENGTH && cursor.isWellFormed()
      ? cursor
      : undefined;
  }

  #digits(text: string, value: number): string | undefined {
    return Number.isSafeInteger(value) ? String(value) : numberSource(text, this.#path);
  }

  #read(text: string): unknown {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return undefined;
    }
    return descend(value, this.#path);
  }
}

function descend(value: unknown, path: readonly string[]): unknown {
  let current = value;
  for (const token of path) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, token)) return undefined;
    // An array has members by number only; its length is none of them.
    if (Array.isArray(current) && !/^\d+$/.test(token)) return undefined;
    current = (current as Record<string, unknown>)[token];
  }
  return current;
}
