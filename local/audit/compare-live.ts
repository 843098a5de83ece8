import type { ConnectionRecord, SocketRecord } from "../upstream/record.ts";
import type { Transcript } from "../upstream/transcript.ts";
import { ownSegment } from "./compare.ts";
import { Examples } from "./examples.ts";
import type { StoredMessage } from "./read-messages.ts";

/** Something that was done to a worker or its sockets. Times are host clock milliseconds. */
export interface Fault {
  /** `kill`, `crash`, `freeze`, `cut`, … : for the report only. */
  readonly kind: string;
  /** Taken just before it was done. */
  readonly atMs: number;
  /** When it was undone (a frozen worker woken); absent: never. */
  readonly untilMs?: number;
  /** Connections that the worker held at that moment. */
  readonly connections: ReadonlySet<string>;
  /** The worker's sockets, as the upstream's remote ports. Absent: every socket of these connections open at that moment. */
  readonly remotePorts?: ReadonlySet<number>;
  /** In place of the audit's grace, where it is known how much can have been under way. */
  readonly graceMs?: number;
}

/** Consecutive segments that could not be had. */
export interface GapRun {
  readonly firstSegment: number;
  readonly lastSegment: number;
  /** `nobody`: spoken while no socket was open. `fault`: some of it went only to a worker that a fault had hit. */
  readonly cause: "nobody" | "fault";
}

/** How the stored stream of a feed that cannot replay relates to what was spoken. All is well when the last four counts are 0. */
export interface LiveComparison {
  readonly spoken: number;
  /** Distinct segments stored. */
  readonly stored: number;
  /** Runs of gap segments. */
  readonly gaps: number;
  readonly gapSegments: number;
  /** Lost although a socket was open and no fault excuses it. */
  readonly missing: number;
  /** Rows that repeat a segment. */
  readonly duplicated: number;
  /** Rows that come after a later segment. */
  readonly disordered: number;
  /** Rows that are no segment spoken so far. */
  readonly differing: number;
  readonly runs: readonly GapRun[];
  readonly examples: readonly string[];
}

export interface LiveInput {
  readonly transcript: Transcript;
  readonly record: ConnectionRecord;
  /** In the order of `seq`. */
  readonly rows: readonly StoredMessage[];
  readonly faults: readonly Fault[];
  /** How long before a fault a segment may have been written to a socket and still be lost unstored. */
  readonly graceMs: number;
}

/**
 * Compares what is stored with what a feed that cannot replay spoke: it must be an ordered subset of what was spoken, and a segment may be absent
 * only if nobody was connected when it was spoken, or if every socket it was written to belonged to a worker hit by a
 * fault, no earlier than the grace before it. A fault costs a socket its tail and never its middle: a segment with a
 * later one stored from the same socket is missing, whatever happened.
 */
export function compareLive(input: LiveInput): LiveComparison {
  const { transcript, record } = input;
  const examples = new Examples(transcript.connectionId);
  const stored = new Set<number>();
  let duplicated = 0;
  let disordered = 0;
  let differing = 0;
  let highest = -1;

  for (const row of input.rows) {
    const segment = ownSegment(transcript, row);
    if (segment === undefined || segment >= record.spoken.length) {
      differing += 1;
      examples.add(`row ${row.seq.toString()} is no segment that was spoken`);
    } else if (stored.has(segment)) {
      duplicated += 1;
      examples.add(`segment ${segment} is stored again at ${row.seq.toString()}`);
    } else {
      stored.add(segment);
      if (segment < highest) {
        disordered += 1;
        examples.add(`segment ${segment} is stored behind segment ${highest}`);
      }
      highest = Math.max(highest, segment);
    }
  }

  const excused = excuses(input, stored);
  const runs: GapRun[] = [];
  let missing = 0;
  let gapSegments = 0;
  for (let segment = 0; segment < record.spoken.length; segment += 1) {
    if (stored.has(segment)) continue;
    const cause = excused(segment);
    if (cause === undefined) {
      missing += 1;
      examples.add(`segment ${segment} went to an open socket and is missing`);
      continue;
    }
    gapSegments += 1;
    const before = runs.at(-1);
    if (before?.lastSegment === segment - 1) {
      runs[runs.length - 1] = { ...before, lastSegment: segment, cause: before.cause === "fault" ? "fault" : cause };
    } else runs.push({ firstSegment: segment, lastSegment: segment, cause });
  }

  return {
    spoken: record.spoken.length,
    stored: stored.size,
    gaps: runs.length,
    gapSegments,
    missing,
    duplicated,
    disordered,
    differing,
    runs,
    examples: examples.list,
  };
}

function excuses(input: LiveInput, stored: ReadonlySet<number>): (segment: number) => GapRun["cause"] | undefined {
  const { record, graceMs } = input;
  const faults = input.faults.filter((fault) => fault.connections.has(record.connectionId));
  const sockets = new Map(record.sockets.map((socket) => [socket.socket, socket]));
  const lastStored = lastStoredAlone(record, stored);

  return (segment) => {
    const spoken = record.spoken[segment];
    if (spoken === undefined) throw new RangeError(`segment ${segment} was not spoken (${record.connectionId})`);
    if (spoken.sockets.length === 0) return "nobody";
    const all = spoken.sockets.every((number) => {
      const socket = sockets.get(number);
      if (socket === undefined) throw new Error(`socket ${number} has no record (${record.connectionId})`);
      if (segment < (lastStored.get(number) ?? -1)) return false;
      return faults.some((fault) => hits(fault, socket) && within(fault, spoken.atMs, fault.graceMs ?? graceMs));
    });
    return all ? "fault" : undefined;
  };
}

/** For each socket the last stored segment that can have come from no other socket. */
function lastStoredAlone(record: ConnectionRecord, stored: ReadonlySet<number>): ReadonlyMap<number, number> {
  const last = new Map<number, number>();
  record.spoken.forEach((spoken, segment) => {
    const [socket] = spoken.sockets;
    if (socket !== undefined && spoken.sockets.length === 1 && stored.has(segment)) last.set(socket, segment);
  });
  return last;
}

/**
 * Whether it was a socket of the worker that the fault hit. That it was not closed long before follows from the time of
 * the segment written to it.
 */
function hits(fault: Fault, socket: SocketRecord): boolean {
  if (fault.remotePorts !== undefined && !fault.remotePorts.has(socket.remotePort)) return false;
  return socket.openedAtMs <= fault.atMs;
}

function within(fault: Fault, atMs: number, graceMs: number): boolean {
  return atMs >= fault.atMs - graceMs && atMs <= (fault.untilMs ?? Infinity) + graceMs;
}
