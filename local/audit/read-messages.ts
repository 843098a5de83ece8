import { createHash } from "node:crypto";
import { QueryCommand } from "@aws-sdk/client-dynamodb";
import type { AttributeValue, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { MESSAGE, partsPartition } from "../../shared/messages/row.ts";

/** A stored message, put together again if it was stored in parts. */
export interface StoredMessage {
  readonly seq: bigint;
  readonly opcode: "text" | "binary";
  /** A string for text, bytes for binary. */
  readonly payload: string | Uint8Array;
  /** Wall clock, as the worker that received it read it. */
  readonly receivedAtMs: number;
  readonly leaseEpoch: number;
  readonly cursor: string | undefined;
  /** How many part items it was read from; 0: one item. */
  readonly parts: number;
}

/** A row that cannot be given back as the message that it stands for. */
export interface DamagedMessage {
  readonly seq: string;
  readonly reason: string;
}

export interface StoredMessages {
  /** In the order of `seq`. */
  readonly messages: readonly StoredMessage[];
  readonly damaged: readonly DamagedMessage[];
}

export interface MessagesSource {
  readonly dynamodb: DynamoDBClient;
  readonly table: string;
}

type Item = Readonly<Record<string, AttributeValue>>;

class Damage extends Error {}

/**
 * Reads every stored message of a connection, consistently and in order.
 *
 * @throws what DynamoDB answers; a row that is wrong in itself is reported, not thrown
 */
export async function readMessages(source: MessagesSource, connectionId: string): Promise<StoredMessages> {
  const messages: StoredMessage[] = [];
  const damaged: DamagedMessage[] = [];
  for await (const item of queryAll(source, connectionId)) {
    try {
      messages.push(await toMessage(source, connectionId, item));
    } catch (error) {
      if (!(error instanceof Damage)) throw error;
      damaged.push({ seq: item[MESSAGE.seq]?.N ?? "?", reason: error.message });
    }
  }
  return { messages, damaged };
}

async function* queryAll(source: MessagesSource, key: string): AsyncGenerator<Item> {
  let start: Record<string, AttributeValue> | undefined;
  do {
    const page = await source.dynamodb.send(
      new QueryCommand({
        TableName: source.table,
        KeyConditionExpression: `${MESSAGE.connectionId} = :id`,
        ExpressionAttributeValues: { ":id": { S: key } },
        ConsistentRead: true,
        ExclusiveStartKey: start,
      }),
    );
    yield* page.Items ?? [];
    start = page.LastEvaluatedKey;
  } while (start !== undefined);
}

async function toMessage(source: MessagesSource, connectionId: string, item: Item): Promise<StoredMessage> {
  const seq = numberText(item, MESSAGE.seq);
  const opcode = item[MESSAGE.opcode]?.S;
  if (opcode !== "text" && opcode !== "binary") throw new Damage("opcode must be 'text' or 'binary'");
  const parts = item[MESSAGE.parts] === undefined ? 0 : safeInteger(item, MESSAGE.parts);
  const bytes =
    parts === 0 ? payloadBytes(item) : await joinParts(source, partsPartition(connectionId, BigInt(seq)), parts, item);
  return {
    seq: BigInt(seq),
    opcode,
    payload: opcode === "text" ? decodeText(bytes) : bytes,
    receivedAtMs: safeInteger(item, MESSAGE.receivedAtMs),
    leaseEpoch: safeInteger(item, MESSAGE.epoch),
    cursor: item[MESSAGE.cursor]?.S,
    parts,
  };
}

/** Parts are numbered from 1; the head tells how many there are and the SHA-256 of the whole. */
async function joinParts(source: MessagesSource, key: string, parts: number, head: Item): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const item of queryAll(source, key)) {
    const expected = chunks.length + 1;
    if (numberText(item, MESSAGE.seq) !== String(expected)) throw new Damage(`part ${expected} of ${parts} is missing`);
    chunks.push(payloadBytes(item));
  }
  if (chunks.length !== parts) throw new Damage(`${parts} parts are announced, ${chunks.length} are stored`);
  const whole = Buffer.concat(chunks);
  const sha256 = createHash("sha256").update(whole).digest("hex");
  if (sha256 !== head[MESSAGE.sha256]?.S) throw new Damage(`sha256 is ${sha256}, the head item says otherwise`);
  return whole;
}

function payloadBytes(item: Item): Uint8Array {
  const payload = item[MESSAGE.payload];
  if (payload?.S !== undefined) return Buffer.from(payload.S, "utf8");
  if (payload?.B !== undefined) return payload.B;
  throw new Damage("payload must be S or B");
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Damage("payload of a text message must be UTF-8");
  }
}

function numberText(item: Item, name: string): string {
  const text = item[name]?.N;
  if (text === undefined || !/^-?\d+$/u.test(text)) throw new Damage(`${name} must be a whole N`);
  return text;
}

function safeInteger(item: Item, name: string): number {
  const value = Number(numberText(item, name));
  if (!Number.isSafeInteger(value)) throw new Damage(`${name} must be within the safe integers`);
  return value;
}
