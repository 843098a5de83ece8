import type { Percentiles } from "../audit/percentiles.ts";
import { count, whole } from "../view/wording.ts";
import type { MessageFigures } from "./transcripts.ts";
import type { PerConnectionMinute, WorkerProcessFigures } from "./usage.ts";

export interface OwnershipFigures {
  /** Moments with two acting owners, and epochs that two tasks held. */
  readonly doublyOwned: number;
  /** Connections without an owner that streams: at the end, or for ever after a fault. */
  readonly unowned: number;
  /** Holdings that stopped at their own deadline. */
  readonly fenced: number;
  /** Frames sent and rows received outside of the time in which their holding was allowed to act. */
  readonly lateActs: number;
  /** Rows of an epoch that no journal mentions, and sockets with frames that none does: nobody can judge them. */
  readonly unclaimedRows: number;
  readonly unclaimedSockets: number;
}

export interface FaultReport {
  readonly kind: string;
  readonly task: string;
  /** After all connections were open, ms. */
  readonly atMs: number;
  readonly connections: number;
  readonly recoveryMs: Percentiles;
  readonly neverRecovered: number;
}

export interface FunctionFigures {
  readonly invocations: number;
  readonly errors: number;
}

/** What a run measured, as `--json` writes it. All times are milliseconds. */
export interface RunReport {
  readonly ok: boolean;
  /** Why the run failed. */
  readonly problems: readonly string[];
  readonly connections: number;
  readonly workers: number;
  readonly seconds: number;
  readonly rate: number;
  readonly seed: number;
  readonly messages: MessageFigures;
  readonly ownership: OwnershipFigures;
  /** By kind of fault; `start`: from the START write to the first open socket. */
  readonly recoveryMs: Readonly<Record<string, Percentiles>>;
  readonly faults: readonly FaultReport[];
  /** The pace at which STARTs were written, measured; null for a single one. */
  readonly startsPerSecond: number | null;
  /** From the confirmed STOP to the socket's end. */
  readonly stopMs: Percentiles & { readonly limit: number; readonly late: number };
  /** Workers only; `secondsMeasured` is the time from all connections open to the last segment. */
  readonly perConnectionMinute: PerConnectionMinute & {
    readonly measured: "workers";
    readonly secondsMeasured: number;
  };
  readonly workerProcesses: readonly WorkerProcessFigures[];
  readonly functions: Readonly<Record<string, FunctionFigures>>;
  readonly switchedOff: readonly string[];
  /** Task ends that no fault and no scaling asked for, with the exit code. */
  readonly unexpectedEnds: readonly string[];
  readonly examples: readonly string[];
}

/** Everything that makes a run fail, in words; empty when all is well. */
export function problemsOf(
  report: Pick<RunReport, "messages" | "ownership" | "stopMs" | "unexpectedEnds">,
  drained: boolean,
): string[] {
  const { messages, ownership, stopMs, unexpectedEnds } = report;
  const kept = `kept its socket for more than ${whole(stopMs.limit)} ms`;
  const counted: readonly (readonly [n: number, one: string, many: string])[] = [
    [messages.missing, "message is missing", "messages are missing"],
    [messages.duplicated, "message is stored twice", "messages are stored twice"],
    [messages.differing, "stored message differs from what was sent", "stored messages differ from what was sent"],
    [messages.disordered, "message is stored out of order", "messages are stored out of order"],
    [ownership.unowned, "connection was left without an owner", "connections were left without an owner"],
    [ownership.doublyOwned, "time two owners acted on one connection", "times two owners acted on one connection"],
    [ownership.lateActs, "time a worker acted outside of its lease", "times a worker acted outside of its lease"],
    [ownership.unclaimedRows, "stored row is of no known owner", "stored rows are of no known owner"],
    [stopMs.late, `stopped connection ${kept}`, `stopped connections ${kept.replace("its", "their")}`],
    [unexpectedEnds.length, "task ended unasked", "tasks ended unasked"],
  ];
  const problems = counted.flatMap(([n, one, many]) => (n > 0 ? [count(n, one, many)] : []));
  if (messages.stored === 0) problems.push("nothing was stored");
  if (!drained) problems.push("not every task drained within its time");
  return problems;
}
