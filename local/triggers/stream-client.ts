import {
  DescribeStreamCommand,
  DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  type _Record as SdkRecord,
} from "@aws-sdk/client-dynamodb-streams";

/** A record as DynamoDB Streams and Lambda's events both have it; attribute values stay in DynamoDB's JSON. */
export interface StreamRecord {
  readonly eventID?: string;
  readonly eventName?: string;
  readonly dynamodb: {
    readonly SequenceNumber: string;
    /** Unix seconds. */
    readonly ApproximateCreationDateTime?: number;
    readonly [member: string]: unknown;
  };
  readonly [member: string]: unknown;
}

export interface Shard {
  readonly shardId: string;
  readonly parentShardId: string | undefined;
}

export type StartAt =
  | { readonly type: "LATEST" | "TRIM_HORIZON" }
  | { readonly type: "AFTER_SEQUENCE_NUMBER"; readonly sequenceNumber: string };

const REQUEST_TIMEOUT_MS = 10_000;

/** The calls of DynamoDB Streams that a reader needs, in the shapes that Lambda hands on. */
export class StreamClient {
  readonly #client: DynamoDBStreamsClient;

  constructor(endpoint: string, region: string, credentials?: { accessKeyId: string; secretAccessKey: string }) {
    this.#client = new DynamoDBStreamsClient({
      endpoint,
      region,
      requestHandler: { requestTimeout: REQUEST_TIMEOUT_MS, throwOnRequestTimeout: true },
      ...(credentials === undefined ? {} : { credentials }),
    });
  }

  async shards(streamArn: string): Promise<Shard[]> {
    const shards: Shard[] = [];
    let after: string | undefined;
    do {
      const { StreamDescription } = await this.#client.send(
        new DescribeStreamCommand({
          StreamArn: streamArn,
          ...(after !== undefined && { ExclusiveStartShardId: after }),
        }),
      );
      for (const { ShardId, ParentShardId } of StreamDescription?.Shards ?? []) {
        if (ShardId !== undefined) shards.push({ shardId: ShardId, parentShardId: ParentShardId });
      }
      after = StreamDescription?.LastEvaluatedShardId;
    } while (after !== undefined);
    return shards;
  }

  async iterator(streamArn: string, shardId: string, start: StartAt): Promise<string> {
    const { ShardIterator } = await this.#client.send(
      new GetShardIteratorCommand({
        StreamArn: streamArn,
        ShardId: shardId,
        ShardIteratorType: start.type,
        ...("sequenceNumber" in start && { SequenceNumber: start.sequenceNumber }),
      }),
    );
    if (ShardIterator === undefined) throw new Error(`no iterator for shard ${shardId}`);
    return ShardIterator;
  }

  /** `next` is undefined once the shard is closed and read to its end; nothing else says that it is closed. */
  async records(iterator: string, limit: number): Promise<{ records: StreamRecord[]; next: string | undefined }> {
    const { Records, NextShardIterator } = await this.#client.send(
      new GetRecordsCommand({ ShardIterator: iterator, Limit: limit }),
    );
    return { records: (Records ?? []).map(asLambdaHasIt), next: NextShardIterator };
  }
}

/** Lambda's events are JSON: dates in seconds, binary values in base64. */
function asLambdaHasIt(record: SdkRecord): StreamRecord {
  const json = JSON.stringify(record, function (this: Record<string, unknown>, key, value: unknown) {
    const raw = this[key];
    if (raw instanceof Date) return raw.getTime() / 1000;
    return raw instanceof Uint8Array ? Buffer.from(raw).toString("base64") : value;
  });
  return JSON.parse(json) as StreamRecord;
}
