import { checkConnectionId } from "../../shared/connection/item.ts";
import type { CallOptions, LeaseTable } from "../../shared/lease/index.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import { queryOrphans, type Orphan } from "../../shared/orphans.ts";
import type { HintQueue } from "./hint-queue.ts";
import { BoundedLog } from "./bounded-log.ts";
import type { RecentHints } from "./recent-hints.ts";
import { sendHints } from "./send-hints.ts";

export interface SweepDeps {
  readonly table: LeaseTable;
  readonly queue: HintQueue;
  /** Kept from sweep to sweep. */
  readonly recent: RecentHints;
  /** Anchored wall time, ms. */
  readonly nowMs: () => number;
  readonly logger: Logger;
}

export interface SweepRequest {
  readonly skewMs: number;
  /** Rows per page of the index query. */
  readonly pageSize: number;
  /** Hints of one sweep at most; it also bounds the ids held in memory. */
  readonly maxHints: number;
  /** Batches under way at once. */
  readonly inFlight: number;
}

export interface SweepResult {
  readonly orphans: number;
  /** Hints in the queue before this sweep added its own. */
  readonly depth: number;
  readonly hinted: number;
  /** Left for the next sweep, because the queue did not take them. */
  readonly unsent: number;
  readonly malformed: number;
}

/**
 * Tops the hint queue up, oldest orphans first: it never holds more hints than there are orphans, so that its depth is
 * their number and can drive the scaling.
 *
 * @throws when the index or the queue's depth cannot be read, or when hints were due and the queue took none of them.
 */
export async function sweep(deps: SweepDeps, request: SweepRequest, options?: CallOptions): Promise<SweepResult> {
  const { queue, recent, logger } = deps;
  const nowMs = deps.nowMs();
  recent.prune(nowMs);
  const depth = await queue.depth(options);
  const { orphans, due, malformed } = await findOrphans(deps, request, nowMs, options);

  const room = Math.max(0, orphans - depth);
  const hints = due.slice(0, room).map(({ connectionId, expiredAtMs }) => ({
    connectionId,
    reason: "orphaned" as const,
    hintedAtMs: nowMs,
    // 0 means freed, and the index cannot say when.
    ...(expiredAtMs > 0 ? { freeSinceMs: expiredAtMs } : {}),
  }));
  const { sent, unsent, error } = await sendHints(queue, hints, request.inFlight, options);
  for (const hint of sent) recent.note(hint.connectionId, hint.hintedAtMs);

  if (sent.length === 0 && unsent.length > 0) {
    throw new Error(`the queue took none of ${unsent.length} hints`, { cause: error });
  }
  const result = { orphans, depth, hinted: sent.length, unsent: unsent.length, malformed };
  if (unsent.length > 0) {
    logger.warn({ ...result, ...(error === undefined ? {} : errorFields(error)) }, "hints left for the next sweep");
  } else if (sent.length > 0) logger.info(result, "orphans hinted");
  else logger.debug(result, "nothing to hint");
  return result;
}

interface FoundOrphans {
  readonly orphans: number;
  /** Those that were not hinted a moment ago, oldest first. */
  readonly due: readonly Orphan[];
  readonly malformed: number;
}

async function findOrphans(
  { table, recent, logger }: SweepDeps,
  { skewMs, pageSize, maxHints }: SweepRequest,
  nowMs: number,
  options: CallOptions | undefined,
): Promise<FoundOrphans> {
  // By id: a row that moves while pages are read may show up twice.
  const due = new Map<string, Orphan>();
  const malformed = new BoundedLog(logger);
  let orphans = 0;
  for await (const orphan of queryOrphans(table, { nowMs, skewMs, pageSize }, options)) {
    const { connectionId } = orphan;
    const problem = checkConnectionId(connectionId);
    if (problem !== undefined) {
      // No worker could read its hint, and as an orphan it would make room in the queue for ever.
      malformed.warn({ connectionId, problem }, "index row skipped");
      continue;
    }
    orphans++;
    if (due.size < maxHints && recent.mayHint(connectionId, nowMs)) due.set(connectionId, orphan);
  }
  malformed.close("more index rows skipped");
  return { orphans, due: [...due.values()], malformed: malformed.count };
}
