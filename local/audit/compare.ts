import type { Transcript } from "../upstream/transcript.ts";
import { Examples } from "./examples.ts";
import type { StoredMessage } from "./read-messages.ts";

/** How the stored stream of a replaying feed relates to what was sent. All is well when the last three are 0. */
export interface ReplayComparison {
  /** Segments that the upstream has sent, each counted once. */
  readonly sent: number;
  /** Of these, stored at their position with the payload that was sent. */
  readonly stored: number;
  /** Sent, and nothing is stored at their position. */
  readonly missing: number;
  /** A segment that is stored at its own position and once more elsewhere. */
  readonly duplicated: number;
  /** Rows that hold something else than was sent there (also: at a position that was never sent). */
  readonly differing: number;
  /** The first few findings, in words. */
  readonly examples: readonly string[];
}

/**
 * Compares what is stored with a replaying feed: each of the segments `0 .. sent-1` exactly once, at its position, with
 * its payload, and nothing else.
 */
export function compareReplay(transcript: Transcript, sent: number, rows: readonly StoredMessage[]): ReplayComparison {
  const examples = new Examples(transcript.connectionId);
  const occupied = new Set<number>();
  const stored = new Set<number>();
  const strays: StoredMessage[] = [];
  let differing = 0;

  for (const row of rows) {
    const segment = transcript.segmentAt(row.seq);
    if (segment === undefined || segment >= sent) {
      strays.push(row);
      continue;
    }
    occupied.add(segment);
    if (holds(transcript, row, segment)) stored.add(segment);
    else {
      differing += 1;
      examples.add(`position ${row.seq.toString()} holds another payload`);
    }
  }

  let duplicated = 0;
  for (const row of strays) {
    const segment = ownSegment(transcript, row);
    if (segment !== undefined && stored.has(segment)) {
      duplicated += 1;
      examples.add(`segment ${segment} is stored again at ${row.seq.toString()}`);
    } else {
      differing += 1;
      examples.add(`nothing was sent at position ${row.seq.toString()}`);
    }
  }

  let missing = 0;
  for (let segment = 0; segment < sent; segment += 1) {
    if (occupied.has(segment)) continue;
    missing += 1;
    examples.add(`position ${transcript.positionAt(segment).toString()} is missing`);
  }
  return { sent, stored: stored.size, missing, duplicated, differing, examples: examples.list };
}

/** Whether the row holds exactly this segment (the payload of a binary message is never a string). */
export function holds(transcript: Transcript, row: StoredMessage, segment: number): boolean {
  return row.payload === transcript.payloadAt(segment);
}

/** The segment that the row's own payload says it is; undefined when it is none of this transcript. */
export function ownSegment(transcript: Transcript, row: StoredMessage): number | undefined {
  if (typeof row.payload !== "string") return undefined;
  const position = /^\{"(?:seq|n)":(?<position>\d{1,38}),/u.exec(row.payload)?.groups?.["position"];
  if (position === undefined) return undefined;
  const segment = transcript.segmentAt(BigInt(position));
  return segment !== undefined && holds(transcript, row, segment) ? segment : undefined;
}
