import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { FeedKind } from "./transcript.ts";

/** What a client asked for. `cursor` is undefined when absent or empty: from the start. */
export interface FeedRequest {
  readonly kind: FeedKind;
  readonly connectionId: string;
  readonly cursor: bigint | undefined;
}

/** Reads `/replay/<connection_id>?cursor=<position>` and `/live/<connection_id>`; otherwise the HTTP status to answer. */
export function parseRequest(request: IncomingMessage): FeedRequest | { readonly status: 400 | 404 } {
  const url = URL.parse(request.url ?? "/", "ws://upstream");
  const match = url === null ? null : /^\/(?<kind>replay|live)\/(?<id>[\w.%-]+)$/u.exec(url.pathname);
  const kind = match?.groups?.["kind"];
  const id = match?.groups?.["id"];
  if (url === null || kind === undefined || id === undefined) return { status: 404 };
  const cursor = url.searchParams.get("cursor") ?? "";
  if (!/^\d{0,38}$/u.test(cursor)) return { status: 400 };
  return {
    kind: kind === "live" ? "live" : "replay",
    connectionId: id,
    cursor: cursor === "" ? undefined : BigInt(cursor),
  };
}

const REASONS: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  429: "Too Many Requests",
  503: "Service Unavailable",
};

/** Answers an upgrade with a plain HTTP status and ends the connection. */
export function refuseUpgrade(stream: Duplex, status: number): void {
  stream.on("error", () => stream.destroy());
  const reason = REASONS[status] ?? "Refused";
  stream.end(`HTTP/1.1 ${status} ${reason}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
