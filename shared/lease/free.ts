import { UpdateItemCommand, type AttributeValue } from "@aws-sdk/client-dynamodb";
import { failed, isConditionFailure } from "./classify.ts";
import { sendOptions, type CallOptions, type LeaseTable } from "./context.ts";
import {
  checkpointUpdate,
  freedAs,
  HOLDER_CONDITION,
  holderKey,
  holderRefused,
  holderValues,
  type Checkpoint,
  type Holder,
} from "./holder.ts";
import { held, type Outcome } from "./outcome.ts";

export interface FreeRequest extends Holder {
  /** 0: free now. A future time without owner: parked until then. */
  readonly expiresAtMs: number;
  readonly checkpoint?: Checkpoint;
  readonly assignments?: readonly string[];
  readonly values?: Record<string, AttributeValue>;
}

/** The one write that ends a holding: owner removed, expiry and final checkpoint set together. */
export async function free(
  table: LeaseTable,
  request: FreeRequest,
  options?: CallOptions,
): Promise<Outcome<undefined>> {
  const checkpoint = checkpointUpdate(request.checkpoint);
  const sets = ["lease_expires_at_ms = :expires", ...checkpoint.assignments, ...(request.assignments ?? [])];
  try {
    await table.client.send(
      new UpdateItemCommand({
        TableName: table.tableName,
        Key: holderKey(request),
        ConditionExpression: HOLDER_CONDITION,
        UpdateExpression: `SET ${sets.join(", ")} REMOVE lease_owner`,
        ExpressionAttributeValues: {
          ...holderValues(request),
          ...checkpoint.values,
          ...request.values,
          ":expires": { N: String(request.expiresAtMs) },
        },
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
      sendOptions(options),
    );
    return held(undefined);
  } catch (error) {
    if (!isConditionFailure(error)) return failed(error);
    return freedAs(error.Item, request, request.expiresAtMs) ? held(undefined) : holderRefused(error.Item);
  }
}
