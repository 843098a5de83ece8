import type { RunReport } from "../report/report.ts";
import { reportText } from "../report/text.ts";
import { count, whole, wrap } from "../view/wording.ts";
import type { RecoveryJudgement } from "./judge.ts";
import type { NetworkTotals } from "./network.ts";
import type { PlayedChaos } from "./player.ts";
import { described, kindOf } from "./wording.ts";

/** Of all faults of one kind. */
export interface KindFigures {
  readonly injected: number;
  /** Nobody was there to be hit. */
  readonly skipped: number;
  /** Connections that it was on, struck or ended, each time counted. */
  readonly connections: number;
  /** Bytes that came while it was on. */
  readonly bytes: number;
  readonly longestMs: number;
}

export interface ChaosFigures {
  readonly minutes: number;
  readonly byKind: Readonly<Record<string, KindFigures>>;
  /** The most that were on at the same time. */
  readonly mostAtOnce: number;
  readonly network: NetworkTotals;
  readonly events: readonly {
    readonly id: number;
    readonly atMs: number;
    readonly forMs: number;
    readonly what: string;
    readonly connections: number;
    readonly bytes: number;
    readonly skipped: string | null;
  }[];
  /** From the end of the last fault until every connection streamed; null: not within the bound. */
  readonly calm: { readonly streamingAfterMs: number | null; readonly boundMs: number };
  readonly recovery: Omit<RecoveryJudgement, "examples">;
  /** Leases that ended at their own deadline although nothing kept their worker from renewing them. */
  readonly unexplainedFences: number;
  /** Journal lines of these kinds: leases that another had taken or freed, and connections put aside for a while. */
  readonly lost: number;
  readonly parked: number;
}

export type ChaosReport = RunReport & { readonly chaos: ChaosFigures };

export function byKind(played: readonly PlayedChaos[]): Record<string, KindFigures> {
  const groups = Map.groupBy(played, ({ planned }) => kindOf(planned));
  const sum = (list: readonly PlayedChaos[], of: (one: PlayedChaos) => number): number =>
    list.reduce((total, one) => total + of(one), 0);
  return Object.fromEntries(
    [...groups]
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([kind, list]) => [
        kind,
        {
          injected: list.filter(({ skipped }) => skipped === undefined).length,
          skipped: list.filter(({ skipped }) => skipped !== undefined).length,
          connections: sum(list, connectionsOf),
          bytes: sum(list, ({ network }) => network?.bytes ?? 0),
          longestMs: Math.max(...list.map(({ planned }) => planned.forMs)),
        },
      ]),
  );
}

export function connectionsOf({ network, sockets, struck }: PlayedChaos): number {
  return network?.connections ?? struck?.held.size ?? sockets ?? 0;
}

export function mostAtOnce(played: readonly PlayedChaos[]): number {
  return Math.max(
    0,
    ...played.map(({ atMs }) => played.filter((one) => one.atMs <= atMs && (one.endedAtMs ?? Infinity) >= atMs).length),
  );
}

export function eventsOf(played: readonly PlayedChaos[], startedAtMs: number): ChaosFigures["events"] {
  return played
    .toSorted((a, b) => a.planned.id - b.planned.id)
    .map((one) => ({
      id: one.planned.id,
      atMs: Math.round(one.atMs - startedAtMs),
      forMs: one.planned.forMs,
      what: described(one.planned, one.slot),
      connections: connectionsOf(one),
      bytes: one.network?.bytes ?? 0,
      skipped: one.skipped ?? null,
    }));
}

/** Why a run with chaos failed, beside what every run can fail of. */
export function chaosProblems({ calm, recovery, unexplainedFences }: ChaosFigures): string[] {
  const problems: string[] = [];
  if (calm.streamingAfterMs === null) {
    problems.push(`not every connection streamed within ${whole(calm.boundMs)} ms after the last fault`);
  }
  if (recovery.late > 0) problems.push(`${count(recovery.late, "connection")} streamed again later than the bound`);
  if (unexplainedFences > 0) problems.push(`${count(unexplainedFences, "lease")} fenced without a cause`);
  return problems;
}

const WIDTH = 80;
const LABEL_WIDTH = 16;

/** The whole report for people: what was done to the fleet, and what became of it. */
export function chaosText(report: ChaosReport): string {
  const { chaos } = report;
  const { recovery } = chaos;
  const injected = Object.values(chaos.byKind).reduce((sum, kind) => sum + kind.injected, 0);
  const ways = Object.entries(chaos.network).map(
    ([way, { connections, bytesOut, bytesIn, broken }]) =>
      `  ${way.padEnd(12)}${cell(connections)} connections${cell(bytesOut)} bytes out${cell(bytesIn)} in${cell(broken)} broken`,
  );
  return [
    `${count(injected, "fault")}, up to ${chaos.mostAtOnce} at once (seed ${report.seed})`,
    "",
    "                        done  skipped  connections        bytes   longest ms",
    ...Object.entries(chaos.byKind).map(
      ([kind, figures]) =>
        `  ${kind.padEnd(18)}${cell(figures.injected, 8)}${cell(figures.skipped, 9)}${cell(figures.connections, 13)}` +
        `${cell(figures.bytes, 13)}${cell(figures.longestMs, 13)}`,
    ),
    "",
    ...ways,
    "",
    ...labelled("calm", calmText(chaos)),
    ...labelled(
      "recoveries",
      `from ${count(recovery.undisturbed, "fault")} alone and ${whole(recovery.disturbed)} among others, ` +
        `${count(recovery.late, "connection")} later than the bound`,
    ),
    ...labelled(
      "leases",
      `${whole(chaos.unexplainedFences)} fenced without a cause, ${whole(chaos.lost)} lost, ${whole(chaos.parked)} parked`,
    ),
    "",
    reportText(report),
  ].join("\n");
}

function calmText({ calm: { streamingAfterMs, boundMs } }: ChaosFigures): string {
  return streamingAfterMs === null
    ? `not every connection streamed within ${whole(boundMs)} ms after the last fault`
    : `every connection streamed ${whole(streamingAfterMs)} ms after the last fault (bound ${whole(boundMs)} ms)`;
}

function labelled(label: string, text: string): string[] {
  return wrap(text, WIDTH - LABEL_WIDTH).map((line, at) => (at === 0 ? `  ${label}` : "").padEnd(LABEL_WIDTH) + line);
}

function cell(value: number, width = 12): string {
  return whole(value).padStart(width);
}
