import { UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { CONNECTION } from "../connection/attributes.ts";
import { leaseOf, type RawItem } from "../connection/item.ts";
import { failed, isConditionFailure, isRejectedItem } from "./classify.ts";
import { sendOptions, type CallOptions, type LeaseTable } from "./context.ts";
import { held, lost, unknown, type Outcome } from "./outcome.ts";

export interface AcquireRequest {
  readonly connectionId: string;
  /** The task id that will own the lease. */
  readonly owner: string;
  /** Anchored wall time, ms since the Unix epoch. */
  readonly nowMs: number;
  readonly leaseMs: number;
  /** A lease of another is left alone until it ended this long ago. */
  readonly skewMs: number;
}

export interface Acquired {
  /** Fencing token of this holding: higher than any before it on this item. */
  readonly epoch: bigint;
  readonly expiresAtMs: number;
  /** The whole item after the acquire. */
  readonly item: RawItem;
}

/**
 * Takes a free or expired lease of a STARTED connection.
 *
 * The first acquire of an item starts its epoch from the wall time in seconds, so that an item which was deleted and
 * created again does not repeat the epochs of its first life.
 *
 * @returns held; lost with the reason; unknown also when the lease in the way ends within twice the skew.
 */
export async function acquire(
  table: LeaseTable,
  request: AcquireRequest,
  options?: CallOptions,
): Promise<Outcome<Acquired>> {
  const expiresAtMs = request.nowMs + request.leaseMs;
  try {
    const { Attributes } = await table.client.send(
      new UpdateItemCommand({
        TableName: table.tableName,
        Key: { [CONNECTION.id]: { S: request.connectionId } },
        ConditionExpression:
          "attribute_exists(connection_id) AND desired_state = :started AND " +
          // An owner without an expiry may be alive: the audit gives it one, and then it expires like any other.
          "((attribute_not_exists(lease_expires_at_ms) AND attribute_not_exists(lease_owner)) OR " +
          "lease_expires_at_ms < :takeable)",
        UpdateExpression:
          "SET lease_owner = :me, lease_expires_at_ms = :expires, " +
          "lease_epoch = if_not_exists(lease_epoch, :epochSeed) + :one",
        ExpressionAttributeValues: {
          ":started": { S: "STARTED" },
          ":takeable": { N: String(request.nowMs - request.skewMs) },
          ":me": { S: request.owner },
          ":expires": { N: String(expiresAtMs) },
          ":epochSeed": { N: String(Math.floor(request.nowMs / 1000)) },
          ":one": { N: "1" },
        },
        ReturnValues: "ALL_NEW",
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
      sendOptions(options),
    );
    return ours(Attributes ?? {}, expiresAtMs);
  } catch (error) {
    if (isConditionFailure(error)) return refused(request, expiresAtMs, error.Item);
    return isRejectedItem(error) ? lost("malformed") : failed(error);
  }
}

function ours(item: RawItem, expiresAtMs: number): Outcome<Acquired> {
  const { epoch } = leaseOf(item);
  return epoch === undefined ? lost("malformed", item) : held({ epoch, expiresAtMs, item });
}

function refused(request: AcquireRequest, expiresAtMs: number, item: RawItem | undefined): Outcome<Acquired> {
  if (item === undefined) return lost("gone");
  const lease = leaseOf(item);
  // A resent request is refused by our own first attempt. Only the very expiry we sent proves that it is this request.
  if (lease.owner === request.owner && lease.expiresAtMs === expiresAtMs) return ours(item, expiresAtMs);
  if (lease.desiredState !== "STARTED") return lost("stopped", item);
  if (lease.expiresAtMs === undefined) return lost("malformed", item);
  if (lease.expiresAtMs <= request.nowMs + 2 * request.skewMs) {
    return unknown("expiring", new Error(`the lease in the way ends at ${lease.expiresAtMs}`));
  }
  if (lease.owner === undefined) return lost("parked", item);
  return lost(lease.owner === request.owner ? "own-older-life" : "owned", item);
}
