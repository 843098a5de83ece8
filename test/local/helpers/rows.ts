import type { StoredMessage } from "../../../local/audit/read-messages.ts";
import { buildCorpus } from "../../../local/upstream/corpus.ts";
import type { ConnectionRecord, SocketRecord, SpokenSegment } from "../../../local/upstream/record.ts";
import { loadSpeeches } from "../../../local/upstream/speeches.ts";
import type { FeedKind, Transcript } from "../../../local/upstream/transcript.ts";

const speeches = loadSpeeches();

/** Twenty segments; the replaying one has positions beyond 2^53. */
export function transcriptOf(kind: FeedKind): Transcript {
  const liveShare = kind === "live" ? 1 : 0;
  return buildCorpus(speeches, { seed: 5, connections: 2, seconds: 4, rate: 10, liveShare }).transcripts[1]!;
}

export function row(seq: bigint, payload: string | Uint8Array, leaseEpoch = 1): StoredMessage {
  const opcode = typeof payload === "string" ? "text" : "binary";
  return { seq, opcode, payload, receivedAtMs: 0, leaseEpoch, cursor: undefined, parts: 0 };
}

/** The rows of a replaying feed stored as they should be. */
export function replayRows(transcript: Transcript, segments: Iterable<number>): StoredMessage[] {
  return [...segments].map((segment) => row(transcript.positionAt(segment), transcript.payloadAt(segment)));
}

/** The rows that one holding of a live feed stores. */
export function liveRows(transcript: Transcript, epoch: number, segments: Iterable<number>): StoredMessage[] {
  return [...segments].map((segment, n) =>
    row(BigInt(epoch) * 1_000_000_000_000n + BigInt(n + 1), transcript.payloadAt(segment), epoch),
  );
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, at) => from + at);
}

export function socket(fields: Partial<SocketRecord> & Pick<SocketRecord, "socket" | "openedAtMs">): SocketRecord {
  return {
    connectionId: "talk-00001",
    remotePort: 40_000 + fields.socket,
    closedAtMs: null,
    closeCode: null,
    cut: null,
    firstSegment: null,
    lastSegment: null,
    sent: 0,
    frames: [],
    ...fields,
  };
}

/** A live record with a segment every 100 ms, written to the sockets open at that time. */
export function liveRecord(transcript: Transcript, sockets: readonly SocketRecord[]): ConnectionRecord {
  const spoken: SpokenSegment[] = range(0, transcript.length).map((segment) => {
    const atMs = segment * 100;
    const open = sockets.filter(({ openedAtMs, closedAtMs }) => openedAtMs <= atMs && (closedAtMs ?? Infinity) > atMs);
    return { atMs, sockets: open.map((one) => one.socket) };
  });
  return {
    connectionId: transcript.connectionId,
    kind: "live",
    segments: transcript.length,
    startedAtMs: 0,
    sent: spoken.length,
    sockets,
    spoken,
  };
}
