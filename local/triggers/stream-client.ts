import { isLoopback } from "../stack/server.ts";

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

/** A refusal by the service; `code` is AWS's name for it, such as `ExpiredIteratorException`. */
export class StreamServiceError extends Error {
  override readonly name = "StreamServiceError";
  readonly code: string;

  constructor(operation: string, code: string, message: string) {
    super(`${operation}: ${code}: ${message}`);
    this.code = code;
  }
}

const REQUEST_TIMEOUT_MS = 10_000;

/**
 * The four calls of DynamoDB Streams that a reader needs. Requests carry a placeholder instead of a signature, which local
 * servers accept, so the client refuses endpoints that are not on this machine.
 */
export class StreamClient {
  readonly #endpoint: string;
  readonly #region: string;

  constructor(endpoint: string, region: string) {
    if (!isLoopback(endpoint)) {
      throw new Error(`streams are read only from endpoints on this machine, not from ${endpoint}`);
    }
    this.#endpoint = endpoint;
    this.#region = region;
  }

  async shards(streamArn: string): Promise<Shard[]> {
    const shards: Shard[] = [];
    let after: string | undefined;
    do {
      const answer = await this.#call<{
        StreamDescription: { Shards?: { ShardId: string; ParentShardId?: string }[]; LastEvaluatedShardId?: string };
      }>("DescribeStream", { StreamArn: streamArn, ...(after !== undefined && { ExclusiveStartShardId: after }) });
      for (const { ShardId, ParentShardId } of answer.StreamDescription.Shards ?? []) {
        shards.push({ shardId: ShardId, parentShardId: ParentShardId });
      }
      after = answer.StreamDescription.LastEvaluatedShardId;
    } while (after !== undefined);
    return shards;
  }

  async iterator(streamArn: string, shardId: string, start: StartAt): Promise<string> {
    const answer = await this.#call<{ ShardIterator: string }>("GetShardIterator", {
      StreamArn: streamArn,
      ShardId: shardId,
      ShardIteratorType: start.type,
      ...("sequenceNumber" in start && { SequenceNumber: start.sequenceNumber }),
    });
    return answer.ShardIterator;
  }

  /** `next` is undefined once the shard is closed and read to its end; nothing else says that it is closed. */
  async records(iterator: string, limit: number): Promise<{ records: StreamRecord[]; next: string | undefined }> {
    const answer = await this.#call<{ Records?: StreamRecord[]; NextShardIterator?: string | null }>("GetRecords", {
      ShardIterator: iterator,
      Limit: limit,
    });
    return { records: answer.Records ?? [], next: answer.NextShardIterator ?? undefined };
  }

  async #call<T>(operation: string, body: object): Promise<T> {
    const stamp = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
    const scope = `${stamp.slice(0, 8)}/${this.#region}/dynamodb/aws4_request`;
    const response = await fetch(this.#endpoint, {
      method: "POST",
      headers: {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": `DynamoDBStreams_20120810.${operation}`,
        "x-amz-date": stamp,
        authorization: `AWS4-HMAC-SHA256 Credential=local/${scope}, SignedHeaders=host, Signature=0`,
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    });
    const answer: unknown = await response.json();
    if (response.ok) return answer as T;
    const { __type = `HTTP ${response.status}`, message = "" } = answer as { __type?: string; message?: string };
    throw new StreamServiceError(operation, __type.split("#").at(-1) ?? __type, message);
  }
}
