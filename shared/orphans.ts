import { QueryCommand, type AttributeValue } from "@aws-sdk/client-dynamodb";
import { BY_STATE_INDEX, CONNECTION } from "./connection/attributes.ts";
import { sendOptions, type CallOptions, type LeaseTable } from "./lease/context.ts";

/** A row of the index that looks takeable. The index lags: only the acquire's condition on the base item decides. */
export interface Orphan {
  readonly connectionId: string;
  /** When its lease or park ended, whole ms; 0 when it was freed. */
  readonly expiredAtMs: number;
}

export interface OrphanQuery {
  /** Anchored wall time, ms. */
  readonly nowMs: number;
  readonly skewMs: number;
  /** Rows per page; DynamoDB's own 1 MB limit when absent. */
  readonly pageSize?: number;
}

/** One second behind what an acquire may take, so that a sweep never hints what the acquire must still refuse. */
const BEHIND_ACQUIRE_MS = 1000;

/** Expiries below this are takeable for sure, whoever's clock is within the skew. */
export function orphanCutOffMs(nowMs: number, skewMs: number): number {
  return nowMs - skewMs - BEHIND_ACQUIRE_MS;
}

/** STARTED connections that nobody seems to hold, oldest expiry first, over all pages of the index. */
export async function* queryOrphans(
  table: LeaseTable,
  query: OrphanQuery,
  options?: CallOptions,
): AsyncGenerator<Orphan> {
  let start: Record<string, AttributeValue> | undefined;
  do {
    const page = await table.client.send(
      new QueryCommand({
        TableName: table.tableName,
        IndexName: BY_STATE_INDEX,
        KeyConditionExpression: "desired_state = :started AND lease_expires_at_ms < :cutOff",
        ExpressionAttributeValues: {
          ":started": { S: "STARTED" },
          ":cutOff": { N: String(orphanCutOffMs(query.nowMs, query.skewMs)) },
        },
        ScanIndexForward: true,
        ...(query.pageSize === undefined ? {} : { Limit: query.pageSize }),
        ...(start === undefined ? {} : { ExclusiveStartKey: start }),
      }),
      sendOptions(options),
    );
    for (const item of page.Items ?? []) {
      const connectionId = item[CONNECTION.id]?.S;
      const expiredAtMs = item[CONNECTION.expiresAtMs]?.N;
      if (connectionId !== undefined && expiredAtMs !== undefined) {
        // A hint carries whole milliseconds, while the table takes any number that somebody writes.
        yield { connectionId, expiredAtMs: Math.floor(Number(expiredAtMs)) };
      }
    }
    start = page.LastEvaluatedKey;
  } while (start !== undefined);
}
