import type { Fault } from "../audit/compare-live.ts";
import type { Holding } from "../audit/holdings.ts";
import type { JournalLine } from "../audit/journal.ts";
import type { EndedTask } from "../ecs/service.ts";
import { excusingFaults } from "../report/excuses.ts";
import type { PlayedFault } from "../run/fault-player.ts";
import type { ConnectionRecord, SocketRecord } from "../upstream/record.ts";
import type { PlayedChaos } from "./player.ts";
import { storeOutages } from "./windows.ts";
import type { ChaosEvidence } from "./witness.ts";

/** The upstream notes what it says, and the proxy what it gets, at nearly the same moment. */
const NOTE_SLACK_MS = 250;
/** A socket is reported open by its worker no later than its handshake may take. */
const HANDSHAKE_MS = 5_000;
/** How long a worker whose way to the store is undisturbed may be storing what piled up. */
const CATCH_UP_MS = 5_000;

/**
 * What excuses a gap of a feed that cannot replay, socket by socket. Faults of the network excuse nothing by having been
 * there: only what the proxy itself saw lost is excused, what a broken connection took along, and what came to a worker
 * that had stopped acting because its lease had ended.
 */
export function chaosExcuses(played: readonly PlayedChaos[], evidence: ChaosEvidence): Fault[] {
  const struck = played.flatMap((one) => (one.struck === undefined ? [] : [one.struck]));
  const perSocket = [...evidence.records.values()]
    .filter(({ kind }) => kind === "live")
    .flatMap((record) => [
      ...networkLosses(record, evidence),
      ...restarts(record),
      ...fences(record, evidence),
      ...unstored(record, evidence, played, struck),
      ...unfinishedDials(record, evidence, struck),
    ]);
  return [...excusingFaults(struck, evidence), ...perSocket];
}

/** What a fault held back until nobody was there to get it, and what a connection that a fault broke took along. */
function networkLosses({ sockets }: ConnectionRecord, { linkOf }: ChaosEvidence): Fault[] {
  return sockets.flatMap((socket) => {
    const link = linkOf.get(socket.socket);
    const lost = link?.lostFromMs;
    const broken = link?.brokenAtMs;
    return [
      ...(lost === undefined ? [] : [on(socket, "held back", lost, NOTE_SLACK_MS)]),
      ...(broken === undefined ? [] : [on(socket, "broken", broken)]),
    ];
  });
}

/** What was on its way when the upstream itself ended sockets without a word. */
function restarts({ sockets }: ConnectionRecord): Fault[] {
  return sockets.flatMap((socket) =>
    socket.cut === "fault" && socket.closedAtMs !== null ? [on(socket, "restart", socket.closedAtMs)] : [],
  );
}

/** What reached a worker after its deadline: it may not store it, for another may own the connection by then. */
function fences(record: ConnectionRecord, evidence: ChaosEvidence): Fault[] {
  return holdingsOf(record, evidence).flatMap((holding) => {
    if (holding.fenced === 0) return [];
    const endedAtMs = Math.max(...holding.acting.map(({ toMs }) => toMs));
    return socketsOf(holding, record)
      .filter(({ closedAtMs }) => (closedAtMs ?? Infinity) >= endedAtMs - NOTE_SLACK_MS)
      .map((socket) => on(socket, "fenced", endedAtMs, NOTE_SLACK_MS));
  });
}

/**
 * What a worker was killed with, or had to leave behind when its time to drain was over: as much as it had itself noted a
 * moment before, row by row in the order of their arrival. A backlog of more than a few seconds is believed only where the
 * way to the store was disturbed.
 */
function unstored(
  record: ConnectionRecord,
  evidence: ChaosEvidence,
  played: readonly PlayedChaos[],
  struck: readonly PlayedFault[],
): Fault[] {
  return struck
    .filter(({ kind }) => kind !== "freeze")
    .flatMap((fault) => {
      const endedAtMs =
        fault.kind === "term" ? evidence.deaths.find(({ task }) => task === fault.task)?.atMs : fault.atMs;
      if (endedAtMs === undefined) return [];
      const noted = evidence.usage
        .find(({ taskId }) => taskId === fault.task)
        ?.usage.findLast(({ t }) => t <= endedAtMs);
      if (noted === undefined) return [];
      const fromMs = noted.t - noted.oldestPendingMs;
      const disturbed = storeOutages(played, fault.slot).some(
        (outage) => outage.fromMs <= noted.t && outage.toMs >= fromMs - CATCH_UP_MS,
      );
      if (noted.oldestPendingMs > CATCH_UP_MS && !disturbed) return [];
      return holdingsOf(record, evidence)
        .filter(({ task }) => task === fault.task)
        .flatMap((holding) => socketsOf(holding, record))
        .map((socket) => ({ ...on(socket, "unstored", fromMs, NOTE_SLACK_MS), untilMs: endedAtMs }));
    });
}

/** A socket that opened at the upstream while its worker was struck, so that the worker never learned of it. */
function unfinishedDials(record: ConnectionRecord, evidence: ChaosEvidence, struck: readonly PlayedFault[]): Fault[] {
  const holdings = holdingsOf(record, evidence);
  const reported = new Set(holdings.flatMap((holding) => socketsOf(holding, record)));
  const unreported = record.sockets.filter((socket) => !reported.has(socket));
  return unreported.flatMap((socket) => {
    const by = struck.find(
      (fault) =>
        holdings.some(({ task }) => task === fault.task) &&
        socket.openedAtMs >= fault.atMs - HANDSHAKE_MS &&
        socket.openedAtMs <= (fault.thawedAtMs ?? fault.atMs) + NOTE_SLACK_MS,
    );
    return by === undefined ? [] : [on(socket, "never known", socket.openedAtMs, NOTE_SLACK_MS)];
  });
}

/** From that moment to the socket's end. */
function on(socket: SocketRecord, kind: string, atMs: number, graceMs?: number): Fault {
  return {
    kind,
    atMs: Math.max(atMs, socket.openedAtMs),
    ...(socket.closedAtMs === null ? {} : { untilMs: Math.max(socket.closedAtMs, atMs) }),
    connections: new Set([socket.connectionId]),
    remotePorts: new Set([socket.remotePort]),
    ...(graceMs === undefined ? {} : { graceMs }),
  };
}

function holdingsOf({ connectionId }: ConnectionRecord, { holdings }: ChaosEvidence): readonly Holding[] {
  return holdings.get(connectionId) ?? [];
}

function socketsOf({ opens }: Holding, { sockets }: ConnectionRecord): SocketRecord[] {
  return sockets.filter(({ remotePort, openedAtMs }) =>
    opens.some(({ localPort, atMs }) => localPort === remotePort && Math.abs(atMs - openedAtMs) < HANDSHAKE_MS),
  );
}

/** A drain that could not give everything back ends with this code; see the worker's exit codes. */
const LEASES_LEFT = 3;

/**
 * Whether a terminated task could not drain cleanly because its way to the store was disturbed, meanwhile or within a lease
 * before: an acquire whose answer was lost may have left a lease until then, and the task says so.
 */
export function couldNotDrain(
  {
    task: { taskId, slot, exitCode },
    atMs: endedAtMs,
  }: Pick<EndedTask, "atMs"> & {
    readonly task: Pick<EndedTask["task"], "taskId" | "slot" | "exitCode">;
  },
  played: readonly PlayedChaos[],
  leaseMs: number,
): boolean {
  const term = played.find(({ struck }) => struck?.kind === "term" && struck.task === taskId);
  if (term === undefined || exitCode !== LEASES_LEFT) return false;
  return storeOutages(played, slot).some(({ fromMs, toMs }) => fromMs <= endedAtMs && toMs >= term.atMs - leaseMs);
}

/** Leases that ended by their own deadline although their worker ran and could reach the store all the time. */
export function unexplainedFences(
  journal: readonly JournalLine[],
  played: readonly PlayedChaos[],
  slotOf: ReadonlyMap<string, number>,
  leaseMs: number,
): JournalLine[] {
  const struck = played.flatMap((one) => (one.struck === undefined ? [] : [one.struck]));
  return journal.filter(({ event, task, t }) => {
    if (event !== "fenced") return false;
    const slot = slotOf.get(task);
    const outages = slot === undefined ? [] : storeOutages(played, slot);
    const frozen = struck.filter((fault) => fault.kind === "freeze" && fault.task === task);
    return !(
      outages.some(({ fromMs, toMs }) => fromMs <= t && toMs >= t - leaseMs) ||
      frozen.some(({ atMs, thawedAtMs = Infinity }) => atMs <= t && thawedAtMs >= t - leaseMs)
    );
  });
}
