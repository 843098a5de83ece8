import { UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import type { RawItem } from "../connection/item.ts";
import { leaseOf } from "../connection/item.ts";
import { failed, isConditionFailure } from "./classify.ts";
import { sendOptions, type CallOptions, type LeaseTable } from "./context.ts";
import {
  checkpointUpdate,
  HOLDER_CONDITION,
  holderKey,
  holderRefused,
  holderValues,
  type Checkpoint,
  type Holder,
} from "./holder.ts";
import { held, type Outcome } from "./outcome.ts";

export interface RenewRequest extends Holder {
  /** Must be higher than any expiry this holder sent before, so that a late renewal can never undo a newer one. */
  readonly expiresAtMs: number;
  readonly checkpoint?: Checkpoint;
  /** Clears `failure_count` and `last_error` after a healthy minute. */
  readonly clearFailures?: boolean;
}

export interface Renewed {
  readonly expiresAtMs: number;
  /** The whole item: the heartbeat itself brings `desired_state` and any changed settings. */
  readonly item: RawItem;
  /** False when the stored expiry was already beyond the one sent, so that nothing was written. */
  readonly written: boolean;
}

/** Extends the lease and writes the checkpoint in one go. A renewal that is resent finds its own expiry and passes. */
export async function renew(
  table: LeaseTable,
  request: RenewRequest,
  options?: CallOptions,
): Promise<Outcome<Renewed>> {
  const { assignments, values } = checkpointUpdate(request.checkpoint);
  const clear = request.clearFailures === true;
  const sets = ["lease_expires_at_ms = :expires", ...assignments, ...(clear ? ["failure_count = :zero"] : [])];
  try {
    const { Attributes } = await table.client.send(
      new UpdateItemCommand({
        TableName: table.tableName,
        Key: holderKey(request),
        ConditionExpression:
          `${HOLDER_CONDITION} AND ` + "(attribute_not_exists(lease_expires_at_ms) OR lease_expires_at_ms <= :expires)",
        UpdateExpression: `SET ${sets.join(", ")}${clear ? " REMOVE last_error" : ""}`,
        ExpressionAttributeValues: {
          ...holderValues(request),
          ...values,
          ":expires": { N: String(request.expiresAtMs) },
          ...(clear ? { ":zero": { N: "0" } } : {}),
        },
        ReturnValues: "ALL_NEW",
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
      sendOptions(options),
    );
    return held({ expiresAtMs: request.expiresAtMs, item: Attributes ?? {}, written: true });
  } catch (error) {
    if (!isConditionFailure(error)) return failed(error);
    return stillOurs(request, error.Item) ?? holderRefused(error.Item);
  }
}

/**
 * Owner and epoch are ours, yet the expiry is ahead of what we sent. Nobody but us writes this epoch, apart from an
 * audit that mended an absurd value; the lease is not lost, and the next renewal goes beyond it.
 */
function stillOurs(request: RenewRequest, item: RawItem | undefined): Outcome<Renewed> | undefined {
  if (item === undefined) return undefined;
  const lease = leaseOf(item);
  if (lease.owner !== request.owner || lease.epoch !== request.epoch) return undefined;
  return lease.expiresAtMs !== undefined && lease.expiresAtMs > request.expiresAtMs
    ? held({ expiresAtMs: lease.expiresAtMs, item, written: false })
    : undefined;
}
