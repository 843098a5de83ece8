import type { CorpusOptions } from "./corpus.ts";

/** What the upstream speaks and how it behaves. */
export interface UpstreamConfig extends CorpusOptions {
  /** Whether `?cursor=` gives the segment at the cursor again (`inclusive`) or starts behind it. Default exclusive. */
  readonly cursor?: "exclusive" | "inclusive";
  /** Time between the pings of each socket; default 5,000. */
  readonly pingMs?: number;
}

export interface UpstreamStatus {
  readonly openSockets: number;
  /** Connections that were opened at least once. */
  readonly started: number;
  /** Connections whose every segment was sent (replay) or spoken (live). */
  readonly complete: number;
  /** Frames written, over all sockets. */
  readonly framesSent: number;
  /** Segments reached over all connections, each counted once. */
  readonly segmentsSent: number;
  /** Segments of live feeds that were spoken to nobody. */
  readonly missed: number;
  /** Upgrades refused by the `refuse` fault. */
  readonly refused: number;
}

/** Every call of the parent: what it gives and what it gets. */
export interface Calls {
  /** Lays out a run and forgets the one before. Refused while sockets are open. */
  configure: { params: { config: UpstreamConfig }; result: { segmentsPerConnection: number } };
  status: { params: object; result: UpstreamStatus };
  /** Writes everything recorded as NDJSON to the path. */
  report: { params: { path: string }; result: { path: string } };
  /** Closes all sockets with a close frame; answers when all are gone. */
  "close-all": { params: { code: number }; result: { closed: number } };
  /** For so long answers every upgrade with this HTTP status. */
  refuse: { params: { ms: number; status: number }; result: object };
  /** For so long sends nothing at all: no segments, pings or pongs. What is due then is sent afterwards. */
  stall: { params: { ms: number }; result: object };
  /** Cuts sockets without a close frame: those of the named connections, or all. */
  terminate: { params: { connectionIds?: readonly string[] }; result: { terminated: number } };
}

export type CallName = keyof Calls;

export type Request = {
  [Name in CallName]: { readonly id: number; readonly call: Name; readonly params: Calls[Name]["params"] };
}[CallName];

/** Times are host clock milliseconds; `socket` is the number in the records. */
export type SocketEvent =
  | {
      readonly kind: "opened";
      readonly connectionId: string;
      readonly atMs: number;
      readonly remotePort: number;
      readonly socket: number;
    }
  | {
      readonly kind: "closed";
      readonly connectionId: string;
      readonly atMs: number;
      readonly remotePort: number;
      readonly socket: number;
      readonly code: number;
    };

/** What the child sends. Events come in batches, in the order in which they happened. */
export type ChildMessage =
  | { readonly type: "ready"; readonly port: number }
  | { readonly type: "events"; readonly events: readonly SocketEvent[] }
  | { readonly type: "result"; readonly id: number; readonly result: object }
  | { readonly type: "failure"; readonly id: number; readonly error: string };
