import type { SocketRecord } from "../upstream/record.ts";
import { holdingsOf } from "./holdings.ts";
import type { Death, Holding, Interval } from "./holdings.ts";
import type { JournalLine } from "./journal.ts";

export interface OwnershipInput {
  /** The journals of all workers together, in any order. */
  readonly journal: readonly JournalLine[];
  /** Processes killed or ended. */
  readonly deaths: readonly Death[];
  /** The upstream's records of all sockets. */
  readonly sockets: Iterable<SocketRecord>;
  /** Stored rows: whose epoch they carry, and the worker's wall clock at receipt. */
  readonly rows: Iterable<{
    readonly connectionId: string;
    readonly leaseEpoch: number;
    readonly receivedAtMs: number;
  }>;
  /** Wall clock minus host clock. */
  readonly wallMinusHostMs: number;
  /** How long a frame may be under way and wait in a busy upstream before its receipt is noted; default 250. */
  readonly frameSlackMs?: number;
  /** How far a row's wall clock, in whole milliseconds, may be off; default 5. */
  readonly rowSlackMs?: number;
}

export interface HolderName {
  readonly task: string;
  readonly epoch: number;
}

/** Two holdings of one connection that could act, or did act, at the same time. */
export interface Overlap {
  readonly connectionId: string;
  readonly a: HolderName;
  readonly b: HolderName;
  readonly fromMs: number;
  readonly toMs: number;
}

/** A frame sent or a row received outside of the time in which its holding was allowed to act. */
export interface LateAct extends HolderName {
  readonly connectionId: string;
  readonly act: "frame" | "row";
  readonly detail: string;
  /** Earliest time at which it can have been done. */
  readonly atMs: number;
}

export interface OwnershipResult {
  readonly holdings: number;
  /** Doubly owned: must be empty. */
  readonly overlaps: readonly Overlap[];
  /** Acted after the deadline (or before the lease): must be empty. */
  readonly lateActs: readonly LateAct[];
  /** Epochs that two tasks held, `connection_id epoch`: must be empty. */
  readonly sharedEpochs: readonly string[];
  /** Holdings stopped by their own deadline. */
  readonly fenced: number;
  /** Sockets with frames that no journal line claims, and rows of an epoch that none mentions: not judged. */
  readonly unclaimedSockets: number;
  readonly unclaimedRows: number;
}

/**
 * Checks that at most one worker acted on a connection at a time. Acting is the time from a successful acquire to the
 * local deadline or the release, and any frame sent or row written outside of it: such an act is reported, and stretches
 * the interval, so that it may show up as an overlap too.
 */
export function checkOwnership(input: OwnershipInput): OwnershipResult {
  const holdings = holdingsOf(input.journal, input.deaths);
  const byConnection = Map.groupBy(holdings, ({ connectionId }) => connectionId);
  const lateActs: LateAct[] = [];
  const note = (holding: Holding, act: LateAct["act"], detail: string, fromMs: number, toMs: number): void => {
    if (!stretch(holding.acting, fromMs, toMs)) return;
    const { connectionId, task, epoch } = holding;
    lateActs.push({ connectionId, task, epoch, act, detail, atMs: fromMs });
  };

  const owners = ownersOfSockets(byConnection, input.sockets);
  for (const { socket, holding } of owners.claimed) {
    for (const { kind, atMs } of socket.frames) {
      note(holding, "frame", kind, atMs - (input.frameSlackMs ?? 250), atMs);
    }
  }

  let unclaimedRows = 0;
  const rowSlackMs = input.rowSlackMs ?? 5;
  for (const row of input.rows) {
    const sameEpoch = byConnection.get(row.connectionId)?.filter(({ epoch }) => epoch === row.leaseEpoch) ?? [];
    const atMs = row.receivedAtMs - input.wallMinusHostMs;
    const [first] = sameEpoch;
    if (first === undefined) unclaimedRows += 1;
    else if (!sameEpoch.some(({ acting }) => touches(acting, atMs - rowSlackMs, atMs + rowSlackMs))) {
      note(first, "row", `received at ${row.receivedAtMs}`, atMs - rowSlackMs, atMs + rowSlackMs);
    }
  }

  return {
    holdings: holdings.length,
    overlaps: [...byConnection.values()].flatMap(overlapsAmong),
    lateActs,
    sharedEpochs: [...byConnection.values()].flatMap(sharedEpochs),
    fenced: holdings.reduce((sum, { fenced }) => sum + fenced, 0),
    unclaimedSockets: owners.unclaimed,
    unclaimedRows,
  };
}

interface SocketOwners {
  readonly claimed: readonly { readonly socket: SocketRecord; readonly holding: Holding }[];
  readonly unclaimed: number;
}

/** Matches sockets by port; a port is used again some day, so the report nearest in time counts. */
function ownersOfSockets(
  byConnection: ReadonlyMap<string, readonly Holding[]>,
  sockets: Iterable<SocketRecord>,
): SocketOwners {
  const claimed: { socket: SocketRecord; holding: Holding }[] = [];
  let unclaimed = 0;
  for (const socket of sockets) {
    let nearest: { holding: Holding; distanceMs: number } | undefined;
    for (const holding of byConnection.get(socket.connectionId) ?? []) {
      for (const { localPort, atMs } of holding.opens) {
        const distanceMs = Math.abs(atMs - socket.openedAtMs);
        if (localPort !== socket.remotePort || distanceMs >= (nearest?.distanceMs ?? Infinity)) continue;
        nearest = { holding, distanceMs };
      }
    }
    if (nearest !== undefined) claimed.push({ socket, holding: nearest.holding });
    else if (socket.frames.length > 0) unclaimed += 1;
  }
  return { claimed, unclaimed };
}

function touches(acting: readonly Interval[], fromMs: number, toMs: number): boolean {
  return acting.some((interval) => interval.fromMs <= toMs && interval.toMs >= fromMs);
}

/** Stretches the acting time to an act done between the two times; false if it lies inside already. */
function stretch(acting: Interval[], fromMs: number, toMs: number): boolean {
  if (touches(acting, fromMs, toMs)) return false;
  const before = acting.findLast((interval) => interval.toMs < fromMs);
  const [first] = acting;
  if (before !== undefined) before.toMs = fromMs;
  else if (first !== undefined) first.fromMs = toMs;
  else acting.push({ fromMs, toMs: fromMs });
  return true;
}

function overlapsAmong(holdings: readonly Holding[]): Overlap[] {
  const overlaps: Overlap[] = [];
  holdings.forEach((a, at) => {
    for (const b of holdings.slice(at + 1)) {
      for (const one of a.acting) {
        for (const other of b.acting) {
          const fromMs = Math.max(one.fromMs, other.fromMs);
          const toMs = Math.min(one.toMs, other.toMs);
          if (fromMs < toMs) overlaps.push({ connectionId: a.connectionId, a: nameOf(a), b: nameOf(b), fromMs, toMs });
        }
      }
    }
  });
  return overlaps;
}

function nameOf({ task, epoch }: Holding): HolderName {
  return { task, epoch };
}

function sharedEpochs(holdings: readonly Holding[]): string[] {
  const shared: string[] = [];
  for (const [epoch, holders] of Map.groupBy(holdings, ({ epoch }) => epoch)) {
    const [first] = holders;
    if (first !== undefined && holders.length > 1) shared.push(`${first.connectionId} ${epoch}`);
  }
  return shared;
}
