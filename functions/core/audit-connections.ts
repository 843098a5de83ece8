import { ScanCommand, type AttributeValue } from "@aws-sdk/client-dynamodb";
import { sleep, type Clock } from "../../shared/clock.ts";
import { CONNECTION } from "../../shared/connection/attributes.ts";
import type { RawItem } from "../../shared/connection/item.ts";
import { sendOptions } from "../../shared/lease/context.ts";
import { mend, type CallOptions, type LeaseTable } from "../../shared/lease/index.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import { expiryProblem, workProblems } from "./audit-item.ts";
import { BoundedLog } from "./bounded-log.ts";

export interface AuditDeps {
  readonly table: LeaseTable;
  readonly clock: Clock;
  /** Anchored wall time, ms. */
  readonly nowMs: () => number;
  /** Milliseconds until this invocation is killed. */
  readonly remainingMs: () => number;
  readonly logger: Logger;
}

export interface AuditRequest {
  readonly leaseMs: number;
  readonly maxParkMs: number;
  readonly pageSize: number;
  /** Items read per second, on average: the scan must not crowd out the fleet's own reads and writes. */
  readonly itemsPerSecond: number;
}

export interface AuditResult {
  readonly scanned: number;
  readonly mended: number;
  /** Changed by somebody else between the look and the mending. */
  readonly overtaken: number;
  /** Nobody could say whether the mending was applied; the next audit looks again. */
  readonly failed: number;
  /** Items that no worker could act on. */
  readonly malformed: number;
  /** False when the time ran short before the end of the table. */
  readonly complete: boolean;
}

/** Clocks differ, and a renewal may be on its way: an expiry counts as absurd only this much further. */
const SLACK_MS = 60_000;
/** No page is begun with less than this left. */
const LEAST_PAGE_MS = 10_000;

/**
 * Looks at every connection, slowly: mends the leases that the orphan query cannot see or would never see, and counts the
 * items that no worker could act on. One item never stops it.
 *
 * @throws what the SDK throws when a page cannot be read.
 */
export async function auditConnections(
  deps: AuditDeps,
  request: AuditRequest,
  options?: CallOptions,
): Promise<AuditResult> {
  const { clock, logger } = deps;
  const counts = { scanned: 0, mended: 0, overtaken: 0, failed: 0, malformed: 0 };
  const malformed = new BoundedLog(logger);
  const startedAtMs = clock.monotonicMs();
  let start: Record<string, AttributeValue> | undefined;
  let complete = true;
  do {
    const waitMs = startedAtMs + (counts.scanned / request.itemsPerSecond) * 1000 - clock.monotonicMs();
    if (deps.remainingMs() - Math.max(0, waitMs) < LEAST_PAGE_MS) {
      complete = false;
      break;
    }
    if (waitMs > 0) await sleep(clock, waitMs, options?.signal);
    const page = await scanPage(deps.table, request.pageSize, start, options);
    counts.scanned += page.items.length;
    for (const item of page.items) {
      const problems = workProblems(item);
      if (problems.length > 0) malformed.warn({ connectionId: idOf(item), problems }, "no worker can act on this item");
      const outcome = await mendIfNeeded(deps, request, item, options);
      if (outcome !== undefined) counts[outcome]++;
    }
    start = page.next;
  } while (start !== undefined);
  malformed.close("more items that no worker can act on");

  const result = { ...counts, malformed: malformed.count, complete };
  if (complete) logger.info(result, "all connections audited");
  else logger.warn(result, "audit stopped early: its time ran short; the rest of the table was not looked at");
  return result;
}

async function scanPage(
  table: LeaseTable,
  pageSize: number,
  start: Record<string, AttributeValue> | undefined,
  options: CallOptions | undefined,
): Promise<{ items: readonly RawItem[]; next: Record<string, AttributeValue> | undefined }> {
  const { Items, LastEvaluatedKey } = await table.client.send(
    new ScanCommand({
      TableName: table.tableName,
      // Half the price, and the mending is conditional on what was seen.
      ConsistentRead: false,
      Limit: pageSize,
      ...(start === undefined ? {} : { ExclusiveStartKey: start }),
    }),
    sendOptions(options),
  );
  return { items: Items ?? [], next: LastEvaluatedKey };
}

async function mendIfNeeded(
  { table, nowMs, logger }: AuditDeps,
  { leaseMs, maxParkMs }: AuditRequest,
  seen: RawItem,
  options: CallOptions | undefined,
): Promise<"mended" | "overtaken" | "failed" | undefined> {
  const now = nowMs();
  const problem = expiryProblem(seen, now + Math.max(maxParkMs, leaseMs) + SLACK_MS);
  if (problem === undefined) return undefined;
  const connectionId = idOf(seen);
  const outcome = await mend(table, { connectionId, seen, nowMs: now, leaseMs }, options);
  switch (outcome.kind) {
    case "held":
      logger.warn({ connectionId, problem }, "lease mended");
      return "mended";
    case "lost":
      return "overtaken";
    case "unknown":
      logger.error({ connectionId, problem, ...errorFields(outcome.error) }, "lease could not be mended");
      return "failed";
  }
}

function idOf(item: RawItem): string {
  return item[CONNECTION.id]?.S ?? "";
}
