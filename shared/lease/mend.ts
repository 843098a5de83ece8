import { UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { CONNECTION } from "../connection/attributes.ts";
import { leaseOf, type RawItem } from "../connection/item.ts";
import { failed, isConditionFailure } from "./classify.ts";
import { sendOptions, type CallOptions, type LeaseTable } from "./context.ts";
import { held, lost, type Outcome } from "./outcome.ts";
import { FREE_NOW_MS } from "./release.ts";

export interface MendRequest {
  readonly connectionId: string;
  /** The item as the audit saw it. */
  readonly seen: RawItem;
  readonly nowMs: number;
  readonly leaseMs: number;
}

/**
 * Makes an item visible to the orphan query again. Conditional on the expiry **and** the owner that were seen. An item
 * with an owner is mended to now + L, never to 0: its holder may be alive and must get the chance to renew or to stop.
 */
export async function mend(
  table: LeaseTable,
  request: MendRequest,
  options?: CallOptions,
): Promise<Outcome<undefined>> {
  const { owner } = leaseOf(request.seen);
  const seenExpiry = request.seen[CONNECTION.expiresAtMs];
  const expiresAtMs = owner === undefined ? FREE_NOW_MS : request.nowMs + request.leaseMs;
  const sameExpiry =
    seenExpiry === undefined ? "attribute_not_exists(lease_expires_at_ms)" : "lease_expires_at_ms = :seenExpiry";
  const sameOwner = owner === undefined ? "attribute_not_exists(lease_owner)" : "lease_owner = :seenOwner";
  try {
    await table.client.send(
      new UpdateItemCommand({
        TableName: table.tableName,
        Key: { [CONNECTION.id]: { S: request.connectionId } },
        ConditionExpression: `attribute_exists(connection_id) AND ${sameExpiry} AND ${sameOwner}`,
        UpdateExpression: "SET lease_expires_at_ms = :mended",
        ExpressionAttributeValues: {
          ":mended": { N: String(expiresAtMs) },
          ...(seenExpiry === undefined ? {} : { ":seenExpiry": seenExpiry }),
          ...(owner === undefined ? {} : { ":seenOwner": { S: owner } }),
        },
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
      sendOptions(options),
    );
    return held(undefined);
  } catch (error) {
    if (!isConditionFailure(error)) return failed(error);
    if (error.Item === undefined) return lost("gone");
    const found = leaseOf(error.Item);
    // A resent request is refused by our own first attempt.
    if (found.owner === owner && found.expiresAtMs === expiresAtMs) return held(undefined);
    return lost(found.owner === undefined ? "parked" : "owned", error.Item);
  }
}
