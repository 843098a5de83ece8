import { randomUUID } from "node:crypto";
import type { GivenUp } from "./batch-delivery.ts";

/**
 * The message that an event source mapping puts into its on-failure queue: where in the stream the records are, not the
 * records themselves.
 */
export function onFailureMessage(
  given: GivenUp,
  source: { readonly functionArn: string; readonly streamArn: string; readonly shardId: string },
  nowMs: number,
): string {
  const first = given.records[0]?.dynamodb;
  const last = given.records.at(-1)?.dynamodb;
  const iso = (seconds: number | undefined): string | undefined =>
    seconds === undefined ? undefined : new Date(seconds * 1000).toISOString();
  return JSON.stringify({
    requestContext: {
      requestId: randomUUID(),
      functionArn: source.functionArn,
      condition: given.condition,
      approximateInvokeCount: given.invokeCount,
    },
    version: "1.0",
    timestamp: new Date(nowMs).toISOString(),
    DDBStreamBatchInfo: {
      shardId: source.shardId,
      startSequenceNumber: first?.SequenceNumber,
      endSequenceNumber: last?.SequenceNumber,
      approximateArrivalOfFirstRecord: iso(first?.ApproximateCreationDateTime),
      approximateArrivalOfLastRecord: iso(last?.ApproximateCreationDateTime),
      batchSize: given.records.length,
      streamArn: source.streamArn,
    },
  });
}
