import {
  DeleteItemCommand,
  PutItemCommand,
  QueryCommand,
  UpdateItemCommand,
  type AttributeValue,
  type DynamoDBClient,
  type DynamoDBServiceException,
  type QueryCommandOutput,
  type UpdateItemCommandInput,
  type UpdateItemCommandOutput,
} from "@aws-sdk/client-dynamodb";
import {
  FakeDynamoDb,
  type FakeDynamoDbOptions,
  type TableDefinition,
} from "../support/fake-dynamodb/fake-dynamodb.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

/** Shaped like the table of connections: a sparse index with a numeric sort key, and one that holds keys only. */
export const LEASES: TableDefinition & { TableName: string } = {
  TableName: "leases",
  KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
  AttributeDefinitions: [
    { AttributeName: "id", AttributeType: "S" },
    { AttributeName: "desired", AttributeType: "S" },
    { AttributeName: "expires", AttributeType: "N" },
    { AttributeName: "holder", AttributeType: "S" },
  ],
  GlobalSecondaryIndexes: [
    {
      IndexName: "by_state",
      KeySchema: [
        { AttributeName: "desired", KeyType: "HASH" },
        { AttributeName: "expires", KeyType: "RANGE" },
      ],
      Projection: { ProjectionType: "INCLUDE", NonKeyAttributes: ["holder"] },
    },
    {
      IndexName: "by_owner",
      KeySchema: [{ AttributeName: "holder", KeyType: "HASH" }],
      Projection: { ProjectionType: "KEYS_ONLY" },
    },
  ],
  StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" },
};

/** Shaped like the table of messages: a numeric sort key, no index, no stream. */
export const ROWS: TableDefinition & { TableName: string } = {
  TableName: "rows",
  KeySchema: [
    { AttributeName: "id", KeyType: "HASH" },
    { AttributeName: "seq", KeyType: "RANGE" },
  ],
  AttributeDefinitions: [
    { AttributeName: "id", AttributeType: "S" },
    { AttributeName: "seq", AttributeType: "N" },
  ],
};

export type Attributes = Record<string, AttributeValue>;
export type Update = Omit<UpdateItemCommandInput, "TableName" | "Key">;

export interface Fixture {
  readonly clock: VirtualClock;
  readonly fake: FakeDynamoDb;
  readonly client: DynamoDBClient;
  readonly put: (item: Attributes) => Promise<unknown>;
  readonly update: (id: string, update: Update) => Promise<UpdateItemCommandOutput>;
  readonly remove: (id: string) => Promise<unknown>;
  /** Ids that an index query finds, in its order. */
  readonly idsIn: (index: "by_state" | "by_owner", key: string) => Promise<(string | undefined)[]>;
}

export function makeFixture(options: Partial<FakeDynamoDbOptions> = {}): Fixture {
  const clock = new VirtualClock();
  const fake = new FakeDynamoDb({ clock, tables: [LEASES, ROWS], ...options });
  const client = fake.client();
  return {
    clock,
    fake,
    client,
    put: (item) => client.send(new PutItemCommand({ TableName: "leases", Item: item })),
    update: (id, update) =>
      client.send(new UpdateItemCommand({ TableName: "leases", Key: { id: { S: id } }, ...update })),
    remove: (id) => client.send(new DeleteItemCommand({ TableName: "leases", Key: { id: { S: id } } })),
    idsIn: async (index, key) => {
      const name = index === "by_state" ? "desired" : "holder";
      const output: QueryCommandOutput = await client.send(
        new QueryCommand({
          TableName: "leases",
          IndexName: index,
          KeyConditionExpression: `${name} = :key`,
          ExpressionAttributeValues: { ":key": { S: key } },
        }),
      );
      return (output.Items ?? []).map((item) => item["id"]?.S);
    },
  };
}

/** Matches a service error by its name and, where it matters, part of its message. */
export function serviceError(name: string, message?: RegExp): (error: DynamoDBServiceException) => true {
  return (error) => {
    if (error.name !== name || message?.test(error.message) === false) {
      throw new Error(`expected ${name} ${String(message)}, got ${error.name}: ${error.message}`, { cause: error });
    }
    return true;
  };
}
