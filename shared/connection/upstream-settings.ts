import { z } from "zod";

/** The largest and smallest integers that DynamoDB keeps exactly (38 digits). */
const POSITION = /^(0|[1-9]\d{0,37})$/;

const JSON_POINTER = /^(\/([^/~]|~[01])*)*$/;

const position = z.strictObject({
  /** RFC 6901 pointer to the position inside each JSON message. */
  pointer: z.string().max(512).regex(JSON_POINTER, "must be a JSON Pointer such as /payload/seq"),
  /**
   * `sequence`: every message carries a unique, rising, non-negative integer; it becomes the message's key, so a replay
   * writes the same row again. `cursor`: an opaque string that is only given back on resume.
   */
  kind: z.enum(["sequence", "cursor"]),
  /** What `{cursor}` stands for before anything was stored; without it, a `{cursor}` query parameter is left out. */
  initial: z.string().max(2048).optional(),
});

/** How to talk to an upstream. Unknown keys are refused: a typo must not silently change how a feed is read. */
export const upstreamSettingsSchema = z.strictObject({
  position: position.optional(),
});

export type UpstreamSettings = z.infer<typeof upstreamSettingsSchema>;

/**
 * Fixed for the life of a connection id, because it decides what the keys of stored messages mean.
 * `positioned`: seq is the upstream's own position. `unpositioned`: seq is epoch × 10^12 + n.
 */
export type ConnectionKind = "positioned" | "unpositioned";

export function kindOf(upstream: UpstreamSettings | undefined): ConnectionKind {
  return upstream?.position?.kind === "sequence" ? "positioned" : "unpositioned";
}

/** Parses the decimal text of a position or of `last_seq`; undefined when it is not a non-negative integer of at most 38 digits. */
export function parseSeq(text: string): bigint | undefined {
  return POSITION.test(text) ? BigInt(text) : undefined;
}

/** The placeholder in `ws_url` that the position is given back in. */
export const CURSOR_PLACEHOLDER = "{cursor}";

/** Why `wsUrl` cannot be dialled, or undefined. Placeholders are filled with harmless text, before any position exists. */
export function checkWsUrl(wsUrl: string): string | undefined {
  const url = URL.parse(wsUrl.replaceAll(CURSOR_PLACEHOLDER, "0"));
  if (url === null) return "is not a URL";
  if (url.protocol !== "ws:" && url.protocol !== "wss:") return "must begin with ws:// or wss://";
  if (url.hash !== "") return "must not have a fragment";
  if (url.username !== "" || url.password !== "") return "must not carry credentials";
  // An upstream chooses the position, and must not choose with it whom a worker talks to.
  if (URL.parse(wsUrl.replaceAll(CURSOR_PLACEHOLDER, "1"))?.host !== url.host) {
    return `must not have ${CURSOR_PLACEHOLDER} in its host or port`;
  }
  return undefined;
}
