import { GetItemCommand, QueryCommand, type AttributeValue, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Cancel, Clock } from "../../shared/clock.ts";
import { CONNECTION } from "../../shared/connection/attributes.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import { MESSAGE } from "../../shared/messages/row.ts";
import type { Transcript } from "../upstream/transcript.ts";

export interface LiveAuditDeps {
  readonly dynamodb: DynamoDBClient;
  readonly connectionsTable: string;
  readonly messagesTable: string;
  readonly transcripts: readonly Transcript[];
  readonly clock: Clock;
  readonly logger: Logger;
}

/** One connection at a time, so that looking does not disturb what is looked at. */
const EVERY_MS = 250;

/**
 * Looks, connection by connection, whether everything that a worker has called durable is in the table: each segment up
 * to `last_seq`, with its payload. Only replaying feeds can be judged while they speak. Each row is read once.
 */
export class LiveAudit {
  readonly #deps: LiveAuditDeps;
  readonly #transcripts: readonly Transcript[];
  /** By connection: the first segment that was not looked at yet. */
  readonly #next = new Map<string, number>();
  #turn = 0;
  #lost = 0;
  #checked = 0;
  #cancel: Cancel = () => undefined;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: LiveAuditDeps) {
    this.#deps = deps;
    this.#transcripts = deps.transcripts.filter(({ kind }) => kind === "replay");
  }

  /** Segments that should be stored and are not, of those looked at. */
  get result(): { readonly lost: number; readonly checked: number } {
    return { lost: this.#lost, checked: this.#checked };
  }

  start(): void {
    this.#cancel = this.#deps.clock.after(EVERY_MS, () => {
      this.#running = this.#look()
        .catch((error: unknown) => this.#deps.logger.warn(errorFields(error), "a stored stream could not be read"))
        .then(() => {
          if (!this.#stopped) this.start();
        });
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#running;
  }

  async #look(): Promise<void> {
    const transcript = this.#transcripts[this.#turn++ % this.#transcripts.length];
    if (transcript === undefined) return;
    const durable = await this.#lastSeq(transcript.connectionId);
    const from = this.#next.get(transcript.connectionId) ?? 0;
    const until = durable === undefined ? 0 : transcript.firstAfter(durable);
    if (until <= from) return;
    const stored = await this.#payloads(transcript, from, until);
    for (let segment = from; segment < until; segment += 1) {
      if (stored.get(transcript.positionAt(segment).toString()) === transcript.payloadAt(segment)) continue;
      this.#lost += 1;
      this.#deps.logger.error({ connectionId: transcript.connectionId, segment }, "a durable segment is not stored");
    }
    this.#checked += until - from;
    this.#next.set(transcript.connectionId, until);
  }

  async #lastSeq(connectionId: string): Promise<bigint | undefined> {
    const { Item } = await this.#deps.dynamodb.send(
      new GetItemCommand({
        TableName: this.#deps.connectionsTable,
        Key: { [CONNECTION.id]: { S: connectionId } },
        ProjectionExpression: CONNECTION.lastSeq,
        ConsistentRead: true,
      }),
    );
    const text = Item?.[CONNECTION.lastSeq]?.N;
    return text === undefined ? undefined : BigInt(text);
  }

  async #payloads(transcript: Transcript, from: number, until: number): Promise<Map<string, string | undefined>> {
    const payloads = new Map<string, string | undefined>();
    let start: Record<string, AttributeValue> | undefined;
    do {
      const page = await this.#deps.dynamodb.send(
        new QueryCommand({
          TableName: this.#deps.messagesTable,
          KeyConditionExpression: `${MESSAGE.connectionId} = :id AND ${MESSAGE.seq} BETWEEN :from AND :until`,
          ExpressionAttributeValues: {
            ":id": { S: transcript.connectionId },
            ":from": { N: transcript.positionAt(from).toString() },
            ":until": { N: transcript.positionAt(until - 1).toString() },
          },
          ConsistentRead: true,
          ExclusiveStartKey: start,
        }),
      );
      for (const item of page.Items ?? []) payloads.set(item[MESSAGE.seq]?.N ?? "", item[MESSAGE.payload]?.S);
      start = page.LastEvaluatedKey;
    } while (start !== undefined);
    return payloads;
  }
}
