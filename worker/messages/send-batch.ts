import { BatchWriteItemCommand, type DynamoDBClient, type WriteRequest } from "@aws-sdk/client-dynamodb";
import { failed } from "../../shared/lease/classify.ts";
import type { Write } from "./entry.ts";
import { itemOf, keyOf } from "./items.ts";

export interface SendDeps {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly ttlSeconds: number;
}

export type BatchOutcome =
  /** DynamoDB answered: what is not left is durable. */
  | { readonly kind: "answered"; readonly stored: readonly Write[]; readonly left: readonly Write[] }
  /** Nothing was written, for lack of capacity. */
  | { readonly kind: "throttled"; readonly error: unknown }
  /** Nothing was written, and never will be as long as the request is the same. */
  | { readonly kind: "refused"; readonly problem: string }
  /** Nobody can say whether anything was written; writing it again does no harm. */
  | { readonly kind: "unknown"; readonly error: unknown };

/**
 * One request; the client has its own timeout per attempt.
 * @throws {Error} only for writes of an entry that is settled, never for what the request meets.
 */
export async function sendBatch(
  deps: SendDeps,
  writes: readonly Write[],
  abortSignal: AbortSignal,
): Promise<BatchOutcome> {
  const requests = writes.map((write) => ({ PutRequest: { Item: itemOf(write, deps.ttlSeconds) } }));
  try {
    const command = new BatchWriteItemCommand({ RequestItems: { [deps.tableName]: requests } });
    const { UnprocessedItems } = await deps.client.send(command, { abortSignal });
    return answered(writes, Object.values(UnprocessedItems ?? {}).flat());
  } catch (error) {
    if (refusesContent(error)) return { kind: "refused", problem: error.message };
    return failed(error).reason === "throttled" ? { kind: "throttled", error } : { kind: "unknown", error };
  }
}

function answered(writes: readonly Write[], unprocessed: readonly WriteRequest[]): BatchOutcome {
  if (unprocessed.length === 0) return { kind: "answered", stored: writes, left: [] };
  const keys = new Set(unprocessed.map((request) => keyOf(request.PutRequest?.Item)));
  const left = writes.filter((write) => keys.has(write.key));
  // What cannot be told apart counts as not written: a row too many is harmless, one too few is a loss.
  if (left.length < unprocessed.length) return { kind: "answered", stored: [], left: writes };
  return { kind: "answered", stored: writes.filter((write) => !keys.has(write.key)), left };
}

const REFUSALS = new Set([
  "ValidationException",
  "SerializationException",
  "ItemCollectionSizeLimitExceededException",
  "RequestEntityTooLargeException",
]);
const TOO_LARGE_STATUS = 413;

function refusesContent(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  if (REFUSALS.has(error.name)) return true;
  const { $metadata: metadata } = error as { $metadata?: { httpStatusCode?: number } };
  return metadata?.httpStatusCode === TOO_LARGE_STATUS;
}
