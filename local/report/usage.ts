import type { UsageLine } from "../audit/journal.ts";

/** Usage lines of one worker process. */
export interface ProcessUsage {
  readonly taskId: string;
  /** The service's place that it took. */
  readonly slot: number;
  readonly usage: readonly UsageLine[];
}

export interface PerConnectionMinute {
  readonly dynamodbRequests: number;
  readonly writeUnits: number;
  /** Of these, what keeping the leases took; the rest is the messages'. */
  readonly leaseWriteUnits: number;
  readonly readUnits: number;
}

export interface WorkerProcessFigures {
  /** Largest resident set of any process in this place. */
  readonly rssMb: number;
  /** Processor time over the time in which the processes lived; 100 is one core. */
  readonly cpuPercent: number;
  readonly restarts: number;
}

export interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

type CounterField = "requests" | "writeUnits" | "leaseWriteUnits" | "readUnits";

/** What the workers used within the window, for each connection and minute. */
export function perConnectionMinute(
  processes: readonly ProcessUsage[],
  connections: number,
  { fromMs, toMs }: Window,
): PerConnectionMinute {
  const connectionMinutes = (connections * (toMs - fromMs)) / 60_000;
  if (!(connectionMinutes > 0)) throw new RangeError("the window must have connections and a length");
  const used = (field: CounterField): number =>
    processes.reduce((sum, { usage }) => sum + at(usage, field, toMs) - at(usage, field, fromMs), 0) /
    connectionMinutes;
  return {
    dynamodbRequests: rounded(used("requests")),
    writeUnits: rounded(used("writeUnits")),
    leaseWriteUnits: rounded(used("leaseWriteUnits")),
    readUnits: rounded(used("readUnits")),
  };
}

/** One entry for each of the service's places. */
export function workerProcesses(
  processes: readonly ProcessUsage[],
  slots: number,
  restartsOf: (slot: number) => number,
): WorkerProcessFigures[] {
  return Array.from({ length: slots }, (_, slot) => {
    const own = processes.filter((process) => process.slot === slot).map(({ usage }) => usage);
    let cpuMs = 0;
    let livedMs = 0;
    let rssBytes = 0;
    for (const usage of own) {
      const [first, last] = [usage[0], usage.at(-1)];
      if (first === undefined || last === undefined) continue;
      cpuMs += last.cpuMs - first.cpuMs;
      livedMs += last.t - first.t;
      rssBytes = Math.max(rssBytes, ...usage.map((line) => line.rssBytes));
    }
    return {
      rssMb: rounded(rssBytes / 2 ** 20),
      cpuPercent: livedMs === 0 ? 0 : rounded((100 * cpuMs) / livedMs),
      restarts: restartsOf(slot),
    };
  });
}

/** A counter at that time, between the two lines around it on a straight line; a dead process keeps its last value. */
function at(usage: readonly UsageLine[], field: CounterField, timeMs: number): number {
  const next = usage.find(({ t }) => t > timeMs);
  const before = usage.findLast(({ t }) => t <= timeMs);
  if (before === undefined) return 0;
  if (next === undefined) return before[field];
  return before[field] + ((next[field] - before[field]) * (timeMs - before.t)) / (next.t - before.t);
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
