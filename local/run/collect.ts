import { readJournal, type JournalLine } from "../audit/journal.ts";
import { holdingsOf, type Death, type Holding } from "../audit/holdings.ts";
import type { ProcessUsage } from "../report/usage.ts";
import { readRecord, type ConnectionRecord, type SocketRecord } from "../upstream/record.ts";
import type { PlayedFault } from "./fault-player.ts";
import type { Session } from "./session.ts";

/** What all parties wrote down until now, read back. */
export interface Evidence {
  readonly journal: readonly JournalLine[];
  readonly usage: readonly ProcessUsage[];
  readonly deaths: readonly Death[];
  readonly holdings: ReadonlyMap<string, readonly Holding[]>;
  readonly records: ReadonlyMap<string, ConnectionRecord>;
  readonly sockets: ReadonlyMap<string, readonly SocketRecord[]>;
}

/** Reads all journals, and asks the upstream for its record. */
export async function collectEvidence({ fleet, folder }: Session, faults: readonly PlayedFault[]): Promise<Evidence> {
  await fleet.upstream.report(folder.upstreamRecord);
  const { connections } = await readRecord(folder.upstreamRecord);
  const journal: JournalLine[] = [];
  const usage: ProcessUsage[] = [];
  const tasks = [...fleet.ecs.running, ...fleet.ecs.ended.map(({ task }) => task)];
  for (const { taskId, slot } of tasks) {
    const read = await readJournal(folder.journal(taskId));
    journal.push(...read.lines);
    usage.push({ taskId, slot, usage: read.usage });
  }
  const deaths = [
    ...faults.flatMap(({ task, deadAtMs }) => (deadAtMs === undefined ? [] : [{ task, atMs: deadAtMs }])),
    ...fleet.ecs.ended.map(({ task, atMs }) => ({ task: task.taskId, atMs })),
  ];
  return {
    journal,
    usage,
    deaths,
    holdings: Map.groupBy(holdingsOf(journal, deaths), ({ connectionId }) => connectionId),
    records: new Map(connections.map((record) => [record.connectionId, record])),
    sockets: new Map(connections.map(({ connectionId, sockets }) => [connectionId, sockets])),
  };
}
