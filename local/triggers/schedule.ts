import type { Cancel, Clock } from "../../shared/clock.ts";

export interface Schedule {
  readonly stats: { runs: number; /** Times that came while the previous run was still busy. */ delayed: number };
  /** No further run begins; one that runs is not waited for. */
  stop(): void;
}

/**
 * Runs `run` at once and then at each multiple of `rateMs` after the start. Runs never overlap, as with a reserved
 * concurrency of 1: a time that comes while one is busy is made up for, once, as soon as that one has ended.
 *
 * @param run must not reject.
 */
export function startSchedule(rateMs: number, clock: Clock, run: () => Promise<void>): Schedule {
  const startedAtMs = clock.monotonicMs();
  const stats = { runs: 0, delayed: 0 };
  let stopped = false;
  let busy = false;
  let due = false;
  let cancel: Cancel = () => undefined;

  const begin = async (): Promise<void> => {
    busy = true;
    do {
      due = false;
      stats.runs++;
      await run();
    } while (isDue());
    busy = false;
  };
  const isDue = (): boolean => due && !stopped;

  const tick = (): void => {
    if (stopped) return;
    // From the grid, not from the last tick: late timers do not add up.
    const elapsedMs = clock.monotonicMs() - startedAtMs;
    cancel = clock.after((Math.floor(elapsedMs / rateMs) + 1) * rateMs - elapsedMs, tick);
    if (busy) {
      due = true;
      stats.delayed++;
    } else void begin();
  };
  tick();

  return {
    stats,
    stop: () => {
      stopped = true;
      cancel();
    },
  };
}

/** The event that a scheduled rule sends. */
export function scheduledEvent(id: string, region: string, nowMs: number, ruleArn: string): object {
  return {
    version: "0",
    id,
    "detail-type": "Scheduled Event",
    source: "aws.events",
    account: "000000000000",
    time: new Date(nowMs).toISOString().replace(/\.\d+Z$/, "Z"),
    region,
    resources: [ruleArn],
    detail: {},
  };
}
