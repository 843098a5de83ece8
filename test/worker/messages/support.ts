import type { BatchWriteItemCommandInput, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Clock } from "../../../shared/clock.ts";
import { silentLogger, type Logger } from "../../../shared/logger.ts";
import type { MessageRow } from "../../../shared/messages/row.ts";
import type { Random } from "../../../shared/random.ts";
import { MessageWriter, type Lane, type LaneEvents, type WriterSettings } from "../../../worker/messages/writer.ts";
import { FakeDynamoDb, type Call, type FaultHook } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

export const TABLE = "messages";

/** A seq of 39 digits, none of them a zero at the end: DynamoDB refuses it, since it keeps 38. */
export const TOO_LONG = 10n ** 38n + 1n;

export const SETTINGS: WriterSettings = {
  maxBytes: 64 * 1024 * 1024,
  maxItems: 50_000,
  lingerMs: 10,
  concurrency: 4,
  ttlSeconds: 3600,
};

/** Everything that a lane was told, in order. */
export class Told implements LaneEvents {
  readonly refused: { seq: bigint; problem: string }[] = [];
  readonly pressure: boolean[] = [];

  onRefused(seq: bigint, problem: string): void {
    this.refused.push({ seq, problem });
  }

  onPressure(paused: boolean): void {
    this.pressure.push(paused);
  }

  get paused(): boolean {
    return this.pressure.at(-1) === true;
  }
}

export class Counts {
  readonly #counts = new Map<string, number>();

  count(name: string, n = 1): void {
    this.#counts.set(name, this.of(name) + n);
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }
}

export interface Bench {
  readonly clock: VirtualClock;
  readonly db: FakeDynamoDb;
  readonly writer: MessageWriter;
  readonly counts: Counts;
  /** Sequence numbers of every BatchWriteItem request, in the order sent. */
  readonly requests: string[][];
  readonly lane: () => { lane: Lane; told: Told };
  /** Keys `partition/seq` of all stored items. */
  readonly stored: () => Set<string>;
}

export interface BenchOptions {
  readonly settings?: Partial<WriterSettings>;
  readonly faults?: FaultHook;
  readonly random?: Random;
  readonly logger?: Logger;
}

/** A writer over the in-memory DynamoDB in virtual time. */
export function bench(options: BenchOptions = {}): Bench {
  const clock = new VirtualClock();
  const requests: string[][] = [];
  const db = new FakeDynamoDb({
    clock,
    tables: [
      {
        TableName: TABLE,
        KeySchema: [
          { AttributeName: "connection_id", KeyType: "HASH" },
          { AttributeName: "seq", KeyType: "RANGE" },
        ],
        AttributeDefinitions: [
          { AttributeName: "connection_id", AttributeType: "S" },
          { AttributeName: "seq", AttributeType: "N" },
        ],
      },
    ],
    faults: (call) => {
      requests.push(keysOf(call));
      return options.faults?.(call);
    },
  });
  const counts = new Counts();
  const writer = makeWriter({ client: db.client(), clock, counts, ...options });
  return {
    clock,
    db,
    writer,
    counts,
    requests,
    lane: () => {
      const told = new Told();
      return { lane: writer.lane(told), told };
    },
    stored: () => new Set(db.items(TABLE).map((item) => `${item["connection_id"]?.S ?? ""}/${item["seq"]?.N ?? ""}`)),
  };
}

export function makeWriter(parts: {
  client: DynamoDBClient;
  clock: Clock;
  counts: Counts;
  tableName?: string;
  random?: Random;
  logger?: Logger;
  settings?: Partial<WriterSettings>;
}): MessageWriter {
  return new MessageWriter({
    client: parts.client,
    tableName: parts.tableName ?? TABLE,
    clock: parts.clock,
    random: parts.random ?? (() => 0.5),
    logger: parts.logger ?? silentLogger,
    metrics: parts.counts,
    settings: { ...SETTINGS, ...parts.settings },
  });
}

/** `partition/seq` of each item of a batch. */
export function keysOf(call: Call): string[] {
  const { RequestItems } = call.input as BatchWriteItemCommandInput;
  return Object.values(RequestItems ?? {})
    .flat()
    .map(({ PutRequest }) => `${PutRequest?.Item?.["connection_id"]?.S ?? ""}/${PutRequest?.Item?.["seq"]?.N ?? ""}`);
}

/** Where the lane's checkpoint stands. */
export function claimOf(lane: Lane | undefined): bigint | undefined {
  return lane?.checkpoint?.lastSeq;
}

export function row(connectionId: string, seq: bigint | number, more: Partial<MessageRow> = {}): MessageRow {
  return {
    connectionId,
    seq: BigInt(seq),
    payload: `message ${seq} of ${connectionId}`,
    receivedAtMs: 1_767_225_600_000,
    epoch: 7n,
    ...more,
  };
}

export function pushAll(lane: Lane, connectionId: string, from: number, to: number, more?: Partial<MessageRow>): void {
  for (let seq = from; seq <= to; seq++) lane.push(row(connectionId, seq, more));
}

/** A sequence of numbers in [0, 1) that is the same in every run. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
