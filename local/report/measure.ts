import type { JournalLine } from "../audit/journal.ts";
import { checkOwnership } from "../audit/ownership.ts";
import { percentiles, type Percentiles } from "../audit/percentiles.ts";
import type { Death } from "../audit/holdings.ts";
import type { Traces, Struck } from "./excuses.ts";
import { measureRecovery, type FaultRecovery } from "./recoveries.ts";
import { problemsOf, type FunctionFigures, type RunReport } from "./report.ts";
import type { TranscriptAudit } from "./transcripts.ts";
import { perConnectionMinute, workerProcesses, type ProcessUsage, type Window } from "./usage.ts";

export interface RunFacts {
  readonly options: {
    readonly connections: number;
    readonly workers: number;
    readonly seconds: number;
    readonly rate: number;
    readonly seed: number;
    readonly taskEvents: boolean;
    readonly stream: boolean;
    readonly queue: boolean;
  };
  readonly connectionIds: readonly string[];
  /** Host clock milliseconds, as all times here. */
  readonly startSentAtMs: ReadonlyMap<string, number>;
  readonly firstOpenAtMs: ReadonlyMap<string, number>;
  /** From all connections open to the last segment. */
  readonly window: Window;
  readonly faults: readonly Struck[];
  /** Of the whole run, its end included. */
  readonly evidence: Traces & {
    readonly journal: readonly JournalLine[];
    readonly deaths: readonly Death[];
    readonly usage: readonly ProcessUsage[];
  };
  readonly wallMinusHostMs: number;
  /** Connections without a streaming owner when the speech was over. */
  readonly unowned: readonly string[];
  readonly audit: TranscriptAudit;
  readonly stopped: { readonly closedMs: readonly number[]; readonly limitMs: number; readonly late: number };
  readonly drained: boolean;
  readonly ended: readonly EndedTask[];
  readonly restartsOf: (slot: number) => number;
  readonly functions: Readonly<Record<string, FunctionFigures>>;
}

export interface EndedTask {
  readonly taskId: string;
  readonly slot: number;
  readonly exitCode?: number;
  readonly stopCode?: string;
}

const MAX_EXAMPLES = 20;

/** Turns what was written down into the report, and judges it. */
export function measure(facts: RunFacts): RunReport {
  const { options, evidence, audit, window } = facts;
  const recoveries = facts.faults.map((fault) => measureRecovery(fault, evidence.holdings, evidence.sockets));
  const ownership = checkOwnership({
    journal: evidence.journal,
    deaths: evidence.deaths,
    sockets: [...evidence.sockets.values()].flat(),
    rows: audit.rows,
    wallMinusHostMs: facts.wallMinusHostMs,
  });
  const unowned = new Set([
    ...facts.unowned,
    ...recoveries.flatMap(({ neverRecovered }) => neverRecovered),
    ...facts.connectionIds.filter((id) => !facts.firstOpenAtMs.has(id)),
  ]);
  const { connections, workers, seconds, rate, seed } = options;
  const measured = {
    connections,
    workers,
    seconds,
    rate,
    seed,
    messages: audit.messages,
    ownership: {
      doublyOwned: ownership.overlaps.length + ownership.sharedEpochs.length,
      unowned: unowned.size,
      fenced: ownership.fenced,
      lateActs: ownership.lateActs.length,
      unclaimedRows: ownership.unclaimedRows,
      unclaimedSockets: ownership.unclaimedSockets,
    },
    recoveryMs: { start: whole(startTimes(facts)), ...byKind(recoveries) },
    faults: recoveries.map((recovery) => ({
      kind: recovery.fault.kind,
      task: recovery.fault.task,
      atMs: Math.round(recovery.fault.atMs - window.fromMs),
      connections: recovery.held.length,
      recoveryMs: whole(recovery.recoveryMs),
      neverRecovered: recovery.neverRecovered.length,
    })),
    startsPerSecond: startPace(facts),
    stopMs: { ...whole(facts.stopped.closedMs), limit: facts.stopped.limitMs, late: facts.stopped.late },
    perConnectionMinute: {
      ...perConnectionMinute(evidence.usage, connections, window),
      measured: "workers" as const,
      secondsMeasured: Math.round(window.toMs - window.fromMs) / 1000,
    },
    workerProcesses: workerProcesses(evidence.usage, workers, facts.restartsOf),
    functions: facts.functions,
    switchedOff: switchedOff(options),
    unexpectedEnds: unexpectedEnds(facts),
    examples: [
      ...audit.examples,
      ...[...unowned].map((id) => `${id}: has no owner`),
      ...ownership.overlaps.map(
        ({ connectionId, a, b, fromMs, toMs }) =>
          `${connectionId}: ${a.task} (epoch ${a.epoch}) and ${b.task} (epoch ${b.epoch}) acted at once for ${(toMs - fromMs).toFixed(1)} ms`,
      ),
      ...ownership.lateActs.map(
        ({ connectionId, task, epoch, act, detail }) =>
          `${connectionId}: ${act} (${detail}) of ${task}, epoch ${epoch}, outside of its lease`,
      ),
      ...ownership.sharedEpochs.map((shared) => `${shared}: held by two tasks`),
    ].slice(0, MAX_EXAMPLES),
  };
  const problems = problemsOf(measured, facts.drained);
  return { ok: problems.length === 0, problems, ...measured };
}

function startTimes({ startSentAtMs, firstOpenAtMs }: RunFacts): number[] {
  return [...startSentAtMs].flatMap(([connectionId, sentAtMs]) => {
    const openAtMs = firstOpenAtMs.get(connectionId);
    return openAtMs === undefined ? [] : [openAtMs - sentAtMs];
  });
}

function startPace({ startSentAtMs }: RunFacts): number | null {
  const atMs = [...startSentAtMs.values()];
  const lengthMs = Math.max(...atMs) - Math.min(...atMs);
  return lengthMs > 0 ? Math.round(((atMs.length - 1) * 100_000) / lengthMs) / 100 : null;
}

function byKind(recoveries: readonly FaultRecovery[]): Record<string, Percentiles> {
  const grouped = Map.groupBy(recoveries, ({ fault }) => fault.kind);
  return Object.fromEntries(
    [...grouped].map(([kind, list]) => [kind, whole(list.flatMap(({ recoveryMs }) => recoveryMs))]),
  );
}

function whole(values: readonly number[]): Percentiles {
  return percentiles(values.map((value) => Math.round(value)));
}

function switchedOff({ taskEvents, stream, queue }: RunFacts["options"]): string[] {
  return [...(taskEvents ? [] : ["task events"]), ...(stream ? [] : ["stream"]), ...(queue ? [] : ["queue"])];
}

/** Ends that no fault and no scaling explains, and terminated tasks that did not give everything back. */
function unexpectedEnds({ ended, faults }: RunFacts): string[] {
  return ended.flatMap(({ taskId, slot, exitCode, stopCode }) => {
    const struck = faults.filter(({ task }) => task === taskId).map(({ kind }) => kind);
    const killed = struck.includes("crash") || struck.includes("kill");
    const asked = stopCode !== "EssentialContainerExited" && exitCode === 0;
    return killed || asked ? [] : [`task ${taskId} of worker ${slot + 1} ended with exit code ${exitCode ?? "?"}`];
  });
}
