const BACKSLASH = 92;
const QUOTE = '"';
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/**
 * The digits of a number as they stand in a JSON text, found by the path of its members. A double has lost what is beyond
 * 2^53, and a reviver that would give the source is recursive and a hundred times slower than the parse: one large or
 * deeply nested message of one upstream must not hold up, or bring down, everything else.
 *
 * @param text must have been parsed before: what is no JSON is not found out here.
 * @returns undefined where the path leads to no number.
 */
export function numberSource(text: string, path: readonly string[]): string | undefined {
  const at = valueAt(text, path);
  return at === undefined ? undefined : numberAt(text, at);
}

/**
 * The number or string at the end of a path as it stands in the text, which is JSON by itself.
 *
 * @param text as for {@link numberSource}.
 */
export function scalarSource(text: string, path: readonly string[]): string | undefined {
  const at = valueAt(text, path);
  if (at === undefined) return undefined;
  return text[at] === QUOTE ? text.slice(at, skipString(text, at)) : numberAt(text, at);
}

function numberAt(text: string, at: number): string | undefined {
  NUMBER.lastIndex = at;
  return NUMBER.exec(text)?.[0];
}

function valueAt(text: string, path: readonly string[]): number | undefined {
  let at = skipSpace(text, 0);
  for (const token of path) {
    const value =
      text[at] === "{" ? memberOf(text, at, token) : text[at] === "[" ? elementOf(text, at, token) : undefined;
    if (value === undefined) return undefined;
    at = value;
  }
  return at;
}

/** Where the member's value begins; of members with the same name the last counts, as for `JSON.parse`. */
function memberOf(text: string, objectAt: number, name: string): number | undefined {
  let found: number | undefined;
  let at = skipSpace(text, objectAt + 1);
  while (text[at] === QUOTE) {
    const end = skipString(text, at);
    const raw = text.slice(at + 1, end - 1);
    const key = raw.includes("\\") ? (JSON.parse(`"${raw}"`) as string) : raw;
    at = skipSpace(text, skipSpace(text, end) + 1);
    if (key === name) found = at;
    at = nextItem(text, at);
  }
  return found;
}

function elementOf(text: string, arrayAt: number, index: string): number | undefined {
  if (!/^(0|[1-9]\d*)$/.test(index)) return undefined;
  let at = skipSpace(text, arrayAt + 1);
  for (let left = Number(index); left > 0; left--) {
    if (at >= text.length || text[at] === "]") return undefined;
    at = nextItem(text, at);
  }
  return text[at] === "]" ? undefined : at;
}

/** Past the value that begins here and the comma behind it; at the closing bracket when there is none. */
function nextItem(text: string, valueAt: number): number {
  const at = skipSpace(text, skipValue(text, valueAt));
  return text[at] === "," ? skipSpace(text, at + 1) : at;
}

/** Counts brackets instead of descending, so that depth costs nothing. */
function skipValue(text: string, valueAt: number): number {
  let depth = 0;
  for (let at = valueAt; at < text.length;) {
    const char = text[at];
    if (char === QUOTE) at = skipString(text, at);
    else {
      if (char === "{" || char === "[") depth++;
      else if (char === "}" || char === "]") depth--;
      else if (depth === 0 && char === ",") return at;
      if (depth < 0) return at;
      at++;
    }
    if (depth === 0 && (char === QUOTE || char === "}" || char === "]")) return at;
  }
  return text.length;
}

/** Past the closing quote. */
function skipString(text: string, quoteAt: number): number {
  for (let end = text.indexOf(QUOTE, quoteAt + 1); end !== -1; end = text.indexOf(QUOTE, end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end + 1;
  }
  return text.length;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (text[at] === " " || text[at] === "\n" || text[at] === "\r" || text[at] === "\t") at++;
  return at;
}
