import { DescribeTableCommand } from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import { StreamClient, type StreamRecord } from "../../../local/triggers/stream-client.ts";
import type { LeaseTable } from "../../../shared/lease/index.ts";

/** All records of a table's stream so far, in order. */
export async function streamRecords(table: LeaseTable, endpoint: string): Promise<StreamRecord[]> {
  const { Table } = await table.client.send(new DescribeTableCommand({ TableName: table.tableName }));
  const streamArn = Table?.LatestStreamArn;
  assert.ok(streamArn !== undefined, "the table has a stream");
  const stream = new StreamClient(endpoint, "us-east-1");
  const all: StreamRecord[] = [];
  for (const { shardId } of await stream.shards(streamArn)) {
    let iterator: string | undefined = await stream.iterator(streamArn, shardId, { type: "TRIM_HORIZON" });
    // An open shard has no end: it is read through once a page comes back empty.
    while (iterator !== undefined) {
      const { records, next } = await stream.records(iterator, 1_000);
      all.push(...records);
      iterator = records.length === 0 ? undefined : next;
    }
  }
  return all;
}

/** One record as Lambda hands it over, with everything that AWS puts into it. */
export function streamRecord(
  sequenceNumber: string,
  newImage: object | undefined,
  changes: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return {
    eventID: "c4ca4238a0b923820dcc509a6f75849b",
    eventName: newImage === undefined ? "REMOVE" : "MODIFY",
    eventVersion: "1.1",
    eventSource: "aws:dynamodb",
    awsRegion: "us-east-1",
    eventSourceARN:
      "arn:aws:dynamodb:us-east-1:123456789012:table/ws-fleet-test-connections/stream/2026-01-08T00:48:05.899",
    dynamodb: {
      ApproximateCreationDateTime: 1_767_892_386,
      Keys: { connection_id: { S: "c-1" } },
      ...(newImage !== undefined && { NewImage: newImage }),
      OldImage: { connection_id: { S: "c-1" }, desired_state: { S: "STOPPED" } },
      SequenceNumber: sequenceNumber,
      SizeBytes: 59,
      StreamViewType: "NEW_AND_OLD_IMAGES",
    },
    ...changes,
  };
}
