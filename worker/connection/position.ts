import { parseSeq } from "../../shared/connection/upstream-settings.ts";
import { numberSource, scalarSource } from "./number-source.ts";

/** A cursor travels in every renewal and in a URL. One beyond this, or of broken characters, would make renewals fail. */
const MAX_CURSOR_LENGTH = 2048;

/** Somewhere in the message; only then may a number in it be rounded to an integer that is not what stands there. */
const FRACTION_OR_EXPONENT = /\d[.eE]/;
/**
 * A member whose name is written with an escape. V8 may give it the name of a member that it parsed before, in any other
 * message, where that is how the escape begins (nodejs/node#63785).
 */
const ESCAPED_NAME = /\\[^][^"\\]*"[ \t\r\n]*:/;

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
    const source = this.#source(text, value);
    // 1.0 is whole, and so is 1e3; 1.00000000000000000001 is not, though a double says so.
    return parseSeq(Number.isSafeInteger(value) && isWhole(source) ? String(value) : source);
  }

  /** An opaque cursor, given back as it came; undefined when the message has none that could be stored. */
  cursor(text: string): string | undefined {
    const value = this.#read(text);
    const cursor = typeof value === "number" ? this.#source(text, value) : value;
    return typeof cursor === "string" && cursor.length <= MAX_CURSOR_LENGTH && cursor.isWellFormed()
      ? cursor
      : undefined;
  }

  /** The number as it stands. Read from the text itself only where the double may differ from it. */
  #source(text: string, value: number): string {
    const same = Number.isSafeInteger(value) && !Object.is(value, -0) && !FRACTION_OR_EXPONENT.test(text);
    return same ? String(value) : (numberSource(text, this.#path) ?? "");
  }

  #read(text: string): unknown {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return undefined;
    }
    if (!ESCAPED_NAME.test(text)) return descend(value, this.#path);
    const source = scalarSource(text, this.#path);
    return source === undefined ? undefined : JSON.parse(source);
  }
}

/** Whether a number is whole by its digits. */
function isWhole(source: string): boolean {
  const [mantissa = "", exponent = "0"] = source.toLowerCase().split("e");
  const fraction = mantissa.includes(".") ? mantissa.length - mantissa.indexOf(".") - 1 : 0;
  const digits = mantissa.replace(".", "").replace("-", "");
  let zeros = 0;
  while (zeros < digits.length && digits.at(-1 - zeros) === "0") zeros++;
  return zeros === digits.length || Number(exponent) - fraction + zeros >= 0;
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
