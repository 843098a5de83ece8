import { sleep, type Clock } from "../../shared/clock.ts";
import { releaseOf, type CallOptions, type LeaseTable, type ReleasedOf } from "../../shared/lease/index.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import { notOurs, notProvenDead, taskIdOf, type OurService, type TaskDetail } from "./task-state-change.ts";

export interface ReleaseDeadTaskDeps {
  readonly table: LeaseTable;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface ReleaseDeadTaskRequest {
  readonly detail: TaskDetail;
  readonly ours: OurService;
  readonly perSecond: number;
  readonly attempts: number;
  /** Between the two passes. */
  readonly secondPassAfterMs: number;
}

/**
 * Frees what a task held, once its process is proven dead. Stateless and repeatable: events come twice and out of order,
 * and each release is conditional on the item still naming the task.
 *
 * Two passes, since an acquire that was on its way at the death may land after the first, and the index lags behind.
 *
 * @returns the counts of both passes; undefined when nothing was to be done.
 * @throws when the second pass could not read the index: the event should come again.
 */
export async function releaseDeadTask(
  { table, clock, logger }: ReleaseDeadTaskDeps,
  request: ReleaseDeadTaskRequest,
  options?: CallOptions,
): Promise<ReleasedOf | undefined> {
  const { detail, ours } = request;
  const task = taskIdOf(detail);
  const { stopCode, stoppedReason, lastStatus, desiredStatus } = detail;
  const foreign = notOurs(detail, ours);
  if (foreign !== undefined) {
    logger.debug({ task, reason: foreign }, "task of somebody else");
    return undefined;
  }
  const alive = notProvenDead(detail);
  if (alive !== undefined) {
    logger.info({ task, reason: alive, lastStatus, desiredStatus, stopCode }, "task is not proven dead: leases expire");
    return undefined;
  }

  const pass = (): Promise<ReleasedOf> =>
    releaseOf({ table, clock }, { deadTask: task, perSecond: request.perSecond, attempts: request.attempts }, options);
  const first = await pass().catch((error: unknown) => {
    logger.warn({ task, ...errorFields(error) }, "first pass over a dead task's leases failed");
    return undefined;
  });
  await sleep(clock, request.secondPassAfterMs, options?.signal);
  const second = await pass();
  const total = {
    released: (first?.released ?? 0) + second.released,
    skipped: (first?.skipped ?? 0) + second.skipped,
    // The second pass tries again what failed in the first.
    failed: second.failed,
  };
  const log = total.failed > 0 ? logger.warn.bind(logger) : logger.info.bind(logger);
  log({ task, ...total, stopCode, stoppedReason }, "leases of a dead task released");
  return total;
}
