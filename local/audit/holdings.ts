import type { JournalLine } from "./journal.ts";

export interface Interval {
  fromMs: number;
  toMs: number;
}

/** One life of one lease: a task that held a connection under one epoch, and when it was allowed to act. */
export interface Holding {
  readonly connectionId: string;
  readonly task: string;
  readonly epoch: number;
  /** In order of time; more than one only if a renewal was answered after the local deadline. */
  readonly acting: Interval[];
  readonly fenced: number;
  /** Sockets that the worker reported open: its local port and when. */
  readonly opens: readonly { readonly localPort: number; readonly atMs: number }[];
}

/** A process that is known to have ended, and when at the latest. */
export interface Death {
  readonly task: string;
  readonly atMs: number;
}

/**
 * Finds when each holding could act: from `held` to the earliest of its end event (released, parked, lost, fenced), its
 * last known deadline and the death of its process. A frozen worker writes nothing: its deadline bounds it.
 */
export function holdingsOf(journal: readonly JournalLine[], deaths: readonly Death[]): Holding[] {
  const groups = new Map<string, JournalLine[]>();
  for (const line of journal) {
    const key = JSON.stringify([line.connectionId, line.task, line.epoch]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [line]);
    else group.push(line);
  }
  const diedAtMs = new Map<string, number>();
  for (const { task, atMs } of deaths) diedAtMs.set(task, Math.min(atMs, diedAtMs.get(task) ?? Infinity));

  const holdings: Holding[] = [];
  for (const lines of groups.values()) {
    const [first] = lines;
    if (first === undefined) continue;
    const { connectionId, task, epoch } = first;
    lines.sort((a, b) => a.t - b.t);
    holdings.push({
      connectionId,
      task,
      epoch,
      acting: intervals(lines, diedAtMs.get(task) ?? Infinity),
      fenced: lines.filter(({ event }) => event === "fenced").length,
      opens: lines.flatMap(({ event, localPort, t }) =>
        event === "open" && localPort !== undefined ? [{ localPort, atMs: t }] : [],
      ),
    });
  }
  return holdings;
}

function intervals(lines: readonly JournalLine[], diedAtMs: number): Interval[] {
  const found: Interval[] = [];
  let current: Interval | undefined;
  for (const { t, event, deadline } of lines) {
    switch (event) {
      case "held":
      case "renewed":
        if (deadline === undefined) throw new Error(`${event} at ${t} has no deadline`);
        if (current !== undefined && t <= current.toMs) current.toMs = Math.max(current.toMs, deadline);
        else found.push((current = { fromMs: t, toMs: deadline }));
        break;
      case "released":
      case "parked":
      case "lost":
      case "fenced":
        if (current !== undefined) current.toMs = Math.min(current.toMs, t);
        current = undefined;
        break;
      case "open":
      case "closed":
        break;
    }
  }
  for (const interval of found) interval.toMs = Math.min(interval.toMs, diedAtMs);
  return found.filter(({ fromMs, toMs }) => toMs >= fromMs);
}
