import { QueryCommand, type QueryCommandOutput } from "@aws-sdk/client-dynamodb";
import { BY_STATE_INDEX, CONNECTION } from "../../shared/connection/attributes.ts";
import type { RawItem } from "../../shared/connection/item.ts";
import { sendOptions, type CallOptions, type LeaseTable } from "../../shared/lease/context.ts";
import { orphanCutOffMs } from "../../shared/orphans.ts";
import type { FreeSince } from "./free-since.ts";

export interface FleetCounts {
  /** All that should run. The ones below are parts of it; a lease that ended a moment ago is in none of them. */
  readonly started: number;
  readonly owned: number;
  readonly orphaned: number;
  readonly parked: number;
  /** 0 without orphans. */
  readonly oldestOrphanAgeMs: number;
}

export interface CountRequest {
  /** Anchored wall time, ms. */
  readonly nowMs: number;
  readonly skewMs: number;
  readonly pageSize: number;
}

/**
 * Counts the STARTED connections by the index alone: it projects expiry and owner, so no item is read.
 *
 * @param freeSince kept from round to round
 * @throws what the SDK throws when a page cannot be read.
 */
export async function countFleet(
  table: LeaseTable,
  freeSince: FreeSince,
  { nowMs, skewMs, pageSize }: CountRequest,
  options?: CallOptions,
): Promise<FleetCounts> {
  const cutOffMs = orphanCutOffMs(nowMs, skewMs);
  const counts = { started: 0, owned: 0, orphaned: 0, parked: 0, oldestOrphanAgeMs: 0 };
  try {
    for await (const row of startedRows(table, pageSize, options)) {
      counts.started++;
      const expiresAtMs = Number(row[CONNECTION.expiresAtMs]?.N);
      const owned = row[CONNECTION.owner] !== undefined;
      if (expiresAtMs < cutOffMs) {
        counts.orphaned++;
        // A negative expiry means no more than 0 does: takeable, since nobody knows when.
        const ageMs = expiresAtMs > 0 ? nowMs - expiresAtMs : freeSince.ageMs(row[CONNECTION.id]?.S ?? "", nowMs);
        counts.oldestOrphanAgeMs = Math.max(counts.oldestOrphanAgeMs, ageMs);
      } else if (owned && expiresAtMs >= nowMs) counts.owned++;
      else if (!owned && expiresAtMs > nowMs) counts.parked++;
    }
  } catch (error) {
    freeSince.dropRound();
    throw error;
  }
  freeSince.endRound();
  return counts;
}

async function* startedRows(
  table: LeaseTable,
  pageSize: number,
  options: CallOptions | undefined,
): AsyncGenerator<RawItem> {
  let start: RawItem | undefined;
  do {
    const page: QueryCommandOutput = await table.client.send(
      new QueryCommand({
        TableName: table.tableName,
        IndexName: BY_STATE_INDEX,
        KeyConditionExpression: "desired_state = :started",
        ExpressionAttributeValues: { ":started": { S: "STARTED" } },
        Limit: pageSize,
        ...(start === undefined ? {} : { ExclusiveStartKey: start }),
      }),
      sendOptions(options),
    );
    yield* page.Items ?? [];
    start = page.LastEvaluatedKey;
  } while (start !== undefined);
}
