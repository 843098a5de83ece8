import type { Random } from "../../shared/random.ts";
import { shuffled } from "../../shared/random.ts";

export const FAULT_KINDS = ["crash", "kill", "term", "freeze"] as const;
/** What is done to a task: see {@link FAULT_MEANINGS}. */
export type FaultKind = (typeof FAULT_KINDS)[number];

export const FAULT_MEANINGS: Readonly<Record<FaultKind, string>> = {
  crash: "SIGKILL to the worker process; its supervisor lives",
  kill: "SIGKILL to the whole task",
  term: "SIGTERM to the task, as in a deployment or a scale-in",
  freeze: "SIGSTOP to the whole task, SIGCONT after others have taken over",
};

export type FaultCounts = Readonly<Record<FaultKind, number>>;

/** What decides how long a recovery may take. */
export interface RecoveryTimings {
  readonly leaseMs: number;
  readonly skewMs: number;
  readonly sweepMs: number;
  readonly quietQueueMs: number;
  readonly eventDelayMs: number;
  readonly stream: boolean;
  readonly queue: boolean;
  readonly taskEvents: boolean;
}

export interface PlannedFault {
  readonly kind: FaultKind;
  /** After all connections are open. */
  readonly atMs: number;
}

/** No fault before everything has been streaming for a moment. */
export const LEAD_MS = 3_000;
/** Between a recovery and the next fault: the replacement starts, a woken task gives up what it had. */
const SETTLE_MS = 4_000;
/** A frozen task sleeps on for so long after the others have taken over. */
export const FROZEN_ON_MS = 3_000;

/** How long it takes at most until a connection that is free gets an owner and streams. */
function foundMs({ stream, queue, sweepMs, quietQueueMs }: RecoveryTimings): number {
  if (!queue) return quietQueueMs * 1.2 + 2_000;
  return stream ? 1_500 : sweepMs + 3_000;
}

/** From START, or a release, to an open socket: how long a run waits before it calls a connection un-owned. */
export function patienceMs(timings: RecoveryTimings): number {
  return 2 * foundMs(timings) + 20_000;
}

/** How long a recovery should take at most. */
export function recoveryMs(kind: FaultKind, timings: RecoveryTimings): number {
  const { eventDelayMs, leaseMs, skewMs, sweepMs, queue, taskEvents } = timings;
  const expiryMs = leaseMs + skewMs + (queue ? sweepMs + 3_000 : foundMs(timings));
  switch (kind) {
    case "crash":
      return 1_000 + foundMs(timings);
    case "term":
      return 1_000 + foundMs(timings);
    case "kill":
      return taskEvents ? Math.min(expiryMs, eventDelayMs + 1_500 + foundMs(timings)) : expiryMs;
    case "freeze":
      return expiryMs;
  }
}

function slotMs(kind: FaultKind, timings: RecoveryTimings): number {
  return recoveryMs(kind, timings) + SETTLE_MS + (kind === "freeze" ? FROZEN_ON_MS : 0);
}

/** The length of speech that these faults need, one after the other. */
export function neededMs(counts: FaultCounts, timings: RecoveryTimings): number {
  const kinds = expand(counts);
  return kinds.length === 0 ? 0 : LEAD_MS + kinds.reduce((sum, kind) => sum + slotMs(kind, timings), 0);
}

/**
 * Spreads the faults over the speech, in random order, so that each has its time to be recovered from before the next.
 *
 * @throws when the speech is shorter than {@link neededMs}
 */
export function planFaults(
  counts: FaultCounts,
  timings: RecoveryTimings,
  speechMs: number,
  random: Random,
): PlannedFault[] {
  const kinds = shuffled(expand(counts), random);
  const slackMs = speechMs - neededMs(counts, timings);
  if (kinds.length > 0 && slackMs < 0) throw new RangeError(`${kinds.length} faults do not fit into ${speechMs} ms`);
  const gapMs = slackMs / (kinds.length + 1);
  let atMs = LEAD_MS;
  return kinds.map((kind) => {
    atMs += gapMs;
    const planned = { kind, atMs };
    atMs += slotMs(kind, timings);
    return planned;
  });
}

function expand(counts: FaultCounts): FaultKind[] {
  return FAULT_KINDS.flatMap((kind) => Array.from({ length: counts[kind] }, () => kind));
}
