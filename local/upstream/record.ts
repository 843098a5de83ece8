import { createReadStream, createWriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { UpstreamConfig } from "./protocol.ts";
import type { FeedKind } from "./transcript.ts";

export type InboundKind = "ping" | "pong" | "text" | "binary" | "close";

/** A frame that the upstream received. All times of a record are host clock milliseconds. */
export interface InboundFrame {
  readonly kind: InboundKind;
  readonly atMs: number;
}

/** One WebSocket from its upgrade to its end, as the upstream saw it. */
export interface SocketRecord {
  /** Counts up from 1 over the life of the server. */
  readonly socket: number;
  readonly connectionId: string;
  readonly remotePort: number;
  readonly openedAtMs: number;
  closedAtMs: number | null;
  /** 1006: ended without a close frame. */
  closeCode: number | null;
  /** The upstream itself cut it: it read too slowly for a live feed, or a fault asked for it. */
  cut: "slow" | "fault" | null;
  /** Lowest and highest segment sent on it, and how many. */
  firstSegment: number | null;
  lastSegment: number | null;
  sent: number;
  readonly frames: InboundFrame[];
}

/** When a segment of a live feed was spoken, and the sockets (`SocketRecord.socket`) that it was written to. */
export interface SpokenSegment {
  readonly atMs: number;
  readonly sockets: readonly number[];
}

/** All that the upstream knows of one connection. */
export interface ConnectionRecord {
  readonly connectionId: string;
  readonly kind: FeedKind;
  readonly segments: number;
  /** First open; null: nobody ever came. */
  readonly startedAtMs: number | null;
  /** Segments `0 .. sent-1` have been reached by at least one socket (replay) or were spoken (live). */
  readonly sent: number;
  readonly sockets: readonly SocketRecord[];
  /** Live feeds only, by segment. */
  readonly spoken: readonly SpokenSegment[];
}

/** What a report file holds. */
export interface UpstreamRecord {
  readonly config: UpstreamConfig;
  readonly connections: readonly ConnectionRecord[];
}

/** Writes one line of configuration and then one line for each connection. */
export async function writeRecord(
  path: string,
  config: UpstreamConfig,
  connections: Iterable<ConnectionRecord>,
): Promise<void> {
  function* lines(): Generator<string> {
    yield `${JSON.stringify({ config })}\n`;
    for (const connection of connections) yield `${JSON.stringify(connection)}\n`;
  }
  await pipeline(Readable.from(lines()), createWriteStream(path));
}

/** @throws if the file is missing or was not written by {@link writeRecord} */
export async function readRecord(path: string): Promise<UpstreamRecord> {
  let config: UpstreamConfig | undefined;
  const connections: ConnectionRecord[] = [];
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
    if (config === undefined) config = (JSON.parse(line) as { config?: UpstreamConfig }).config;
    else connections.push(JSON.parse(line) as ConnectionRecord);
    if (config === undefined) break;
  }
  if (config === undefined) throw new Error(`${path}: the first line must hold the upstream's config`);
  return { config, connections };
}
