import { measureRecovery } from "../report/recoveries.ts";
import type { Traces } from "../report/excuses.ts";
import { recoveryMs, type RecoveryTimings } from "../run/fault-plan.ts";
import type { PlayedFault } from "../run/fault-player.ts";
import type { PlayedChaos } from "./player.ts";
import { recoveryDeadline, spanOf } from "./windows.ts";

export interface BoundTimings extends RecoveryTimings {
  readonly pingIntervalMs: number;
  readonly idleTimeoutMs: number;
  readonly reconnectCapMs: number;
  readonly handshakeTimeoutMs: number;
}

/** Everything shares this machine with the faults. */
const SLACK_MS = 5_000;

/**
 * How long a connection may take at most until it streams, once no fault is on any more: its lease may have to expire
 * first, or its worker may have to find out that the socket is dead.
 */
export function calmBoundMs(timings: BoundTimings): number {
  const { pingIntervalMs, idleTimeoutMs, reconnectCapMs, handshakeTimeoutMs } = timings;
  const expiryMs = recoveryMs("freeze", timings);
  const redialMs = idleTimeoutMs + pingIntervalMs + reconnectCapMs + handshakeTimeoutMs;
  return Math.max(expiryMs, redialMs) + SLACK_MS;
}

/** Whether the fault surely cost its task all leases: a task that is woken soon enough goes on with them. */
export function costsLeases(
  { kind, atMs, thawedAtMs = Infinity }: PlayedFault,
  { leaseMs, skewMs }: RecoveryTimings,
): boolean {
  return kind !== "freeze" || thawedAtMs - atMs >= leaseMs + skewMs;
}

export interface RecoveryJudgement {
  /** Faults whose recovery nothing else disturbed, so that the tight bound of their kind held. */
  readonly undisturbed: number;
  readonly disturbed: number;
  /** Connections that streamed again later than their bound. */
  readonly late: number;
  readonly examples: readonly string[];
}

/** Judges when the connections of struck tasks streamed again. What never did is counted elsewhere. */
export function judgeRecoveries(
  played: readonly PlayedChaos[],
  traces: Traces,
  timings: BoundTimings,
): RecoveryJudgement {
  let undisturbed = 0;
  let disturbed = 0;
  let late = 0;
  const examples: string[] = [];
  for (const one of played) {
    const { struck, planned } = one;
    if (struck === undefined || !costsLeases(struck, timings)) continue;
    const others = played.filter((other) => other !== one && other.skipped === undefined).map(spanOf);
    const boundMs = recoveryMs(struck.kind, timings) + SLACK_MS;
    const judged = recoveryDeadline(struck.atMs, others, boundMs, calmBoundMs(timings));
    if (judged.disturbed) disturbed += 1;
    else undisturbed += 1;
    const limitMs = judged.deadlineMs - struck.atMs;
    const tooLate = measureRecovery(struck, traces.holdings, traces.sockets).recoveryMs.filter((ms) => ms > limitMs);
    late += tooLate.length;
    if (tooLate.length > 0) {
      const most = Math.max(...tooLate);
      examples.push(
        `#${planned.id} ${struck.kind}: ${tooLate.length} connections took up to ${Math.round(most)} ms, bound ${Math.round(limitMs)} ms`,
      );
    }
  }
  return { undisturbed, disturbed, late, examples };
}
