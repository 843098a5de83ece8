import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  DeleteItemCommand,
  PutItemCommand,
  QueryCommand,
  UpdateItemCommand,
  type DynamoDBClient,
  type QueryCommandInput,
} from "@aws-sdk/client-dynamodb";
import type { Attributes, Update } from "../fixture.ts";

/** One request to whichever server `client` belongs to. */
export type Send = (client: DynamoDBClient, tables: Tables) => Promise<unknown>;
export interface Tables {
  readonly leases: string;
  readonly rows: string;
}

const NAMES = ["#n"];
const VALUES: Attributes = {
  ":one": { N: "1" },
  ":two": { N: "2.0" },
  ":ten": { N: "10" },
  ":huge": { N: "99999999999999999999999999999999999999" },
  ":oneText": { S: "1" },
  ":s": { S: "hello" },
  ":he": { S: "he" },
  ":M": { S: "M" },
  ":yes": { BOOL: true },
  ":list": { L: [{ N: "7" }] },
  ":empty": { L: [] },
  ":map": { M: { k: { N: "1" } } },
  ":w": { S: "w" },
  ":ON": { S: "ON" },
};

/** Only the placeholders that the expressions use: the others would be refused. */
export function placeholdersFor(...expressions: readonly (string | undefined)[]) {
  const text = expressions.join(" ");
  const used = (name: string): boolean => new RegExp(`${name}\\b`).test(text);
  const values = Object.entries(VALUES).filter(([name]) => used(name));
  return {
    ...(values.length === 0 ? {} : { ExpressionAttributeValues: Object.fromEntries(values) }),
    ...(NAMES.some(used) ? { ExpressionAttributeNames: { "#n": "n" } } : {}),
  };
}

export const put =
  (Item: Attributes): Send =>
  (client, { leases }) =>
    client.send(new PutItemCommand({ TableName: leases, Item, ReturnConsumedCapacity: "INDEXES" }));

export const update =
  (id: string, changes: Update): Send =>
  (client, { leases }) =>
    client.send(
      new UpdateItemCommand({
        TableName: leases,
        Key: { id: { S: id } },
        ReturnValues: "ALL_NEW",
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        ReturnConsumedCapacity: "INDEXES",
        ...placeholdersFor(changes.UpdateExpression, changes.ConditionExpression),
        ...changes,
      }),
    );

export const remove =
  (id: string, ConditionExpression?: string): Send =>
  (client, { leases }) =>
    client.send(
      new DeleteItemCommand({
        TableName: leases,
        Key: { id: { S: id } },
        ReturnValues: "ALL_OLD",
        ReturnConsumedCapacity: "INDEXES",
        ...(ConditionExpression === undefined ? {} : { ConditionExpression }),
        ...placeholdersFor(ConditionExpression),
      }),
    );

export const query =
  (changes: Partial<QueryCommandInput>): Send =>
  (client, { leases }) => {
    const { KeyConditionExpression = "desired = :ON", FilterExpression, ProjectionExpression } = changes;
    return client.send(
      new QueryCommand({
        TableName: leases,
        IndexName: "by_state",
        KeyConditionExpression,
        ReturnConsumedCapacity: "INDEXES",
        ...placeholdersFor(KeyConditionExpression, FilterExpression, ProjectionExpression),
        ...changes,
      }),
    );
  };

export function row(seq: number): Attributes {
  return { id: { S: "w" }, seq: { N: String(seq) } };
}

export function batchWrite(puts: readonly number[], deletes: readonly number[] = []): Send {
  const requests = [
    ...puts.map((seq) => ({ PutRequest: { Item: { ...row(seq), payload: { S: "p" } } } })),
    ...deletes.map((seq) => ({ DeleteRequest: { Key: row(seq) } })),
  ];
  return async (client, { rows }) =>
    client.send(new BatchWriteItemCommand({ RequestItems: { [rows]: requests }, ReturnConsumedCapacity: "INDEXES" }));
}

export function batchGet(seqs: readonly number[]): Send {
  return (client, { rows }) =>
    client.send(
      new BatchGetItemCommand({
        RequestItems: { [rows]: { Keys: seqs.map(row), ProjectionExpression: "seq" } },
        ReturnConsumedCapacity: "INDEXES",
      }),
    );
}

export const ITEM: Attributes = {
  id: { S: "a" },
  n: { N: "1" },
  s: { S: "hello" },
  m: { M: { k: { N: "1" } } },
  l: { L: [{ N: "1" }, { N: "2" }] },
  flag: { BOOL: true },
};
export const lease = (id: string, expires: string, holder?: string): Attributes => ({
  id: { S: id },
  desired: { S: "ON" },
  expires: { N: expires },
  ...(holder === undefined ? {} : { holder: { S: holder } }),
});
