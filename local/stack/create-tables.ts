import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  ResourceNotFoundException,
  UpdateTimeToLiveCommand,
  type DynamoDBClient,
  type KeySchemaElement,
  type TableDescription,
} from "@aws-sdk/client-dynamodb";
import { setTimeout as delay } from "node:timers/promises";
import type { TableDefinition } from "../serverless/tables.ts";

export interface CreatedTable {
  readonly tableName: string;
  readonly tableArn: string;
  /** undefined: the table has no stream. */
  readonly streamArn: string | undefined;
}

const POLL_MS = 50;
const ACTIVE_TIMEOUT_MS = 60_000;

/**
 * Creates the table unless it is there, waits until it is usable, and switches its TTL on.
 * @throws {Error} when a table of this name exists with another key or without the stream.
 */
export async function ensureTable(client: DynamoDBClient, definition: TableDefinition): Promise<CreatedTable> {
  const { tableName } = definition;
  if ((await describe(client, tableName)) === undefined) {
    await client.send(new CreateTableCommand(definition.createInput));
  }
  const table = await untilActive(client, tableName);
  checkShape(table, definition);
  if (definition.timeToLiveAttribute !== undefined) {
    await ensureTimeToLive(client, tableName, definition.timeToLiveAttribute);
  }
  return { tableName, tableArn: table.TableArn ?? "", streamArn: table.LatestStreamArn };
}

async function describe(client: DynamoDBClient, tableName: string): Promise<TableDescription | undefined> {
  try {
    return (await client.send(new DescribeTableCommand({ TableName: tableName }))).Table;
  } catch (error) {
    if (error instanceof ResourceNotFoundException) return undefined;
    throw error;
  }
}

async function untilActive(client: DynamoDBClient, tableName: string): Promise<TableDescription> {
  for (let waitedMs = 0; waitedMs < ACTIVE_TIMEOUT_MS; waitedMs += POLL_MS) {
    const table = await describe(client, tableName);
    if (table?.TableStatus === "ACTIVE") return table;
    await delay(POLL_MS);
  }
  throw new Error(`table ${tableName} did not become ACTIVE within ${ACTIVE_TIMEOUT_MS} ms`);
}

function checkShape(table: TableDescription, { tableName, createInput }: TableDefinition): void {
  if (keyText(table.KeySchema) !== keyText(createInput.KeySchema)) {
    throw new Error(
      `table ${tableName} exists with the key ${keyText(table.KeySchema)}, serverless.yml says ${keyText(createInput.KeySchema)}`,
    );
  }
  const indexes = new Map(table.GlobalSecondaryIndexes?.map((index) => [index.IndexName, keyText(index.KeySchema)]));
  for (const index of createInput.GlobalSecondaryIndexes ?? []) {
    if (indexes.get(index.IndexName) !== keyText(index.KeySchema)) {
      throw new Error(`table ${tableName} exists without the index ${index.IndexName} of serverless.yml`);
    }
  }
  if (createInput.StreamSpecification !== undefined && table.LatestStreamArn === undefined) {
    throw new Error(`table ${tableName} exists without the stream of serverless.yml`);
  }
}

function keyText(schema: readonly KeySchemaElement[] | undefined): string {
  return (schema ?? []).map((key) => `${key.AttributeName} ${key.KeyType}`).join(", ");
}

async function ensureTimeToLive(client: DynamoDBClient, tableName: string, attribute: string): Promise<void> {
  const current = await client.send(new DescribeTimeToLiveCommand({ TableName: tableName }));
  if (current.TimeToLiveDescription?.AttributeName === attribute) return;
  await client.send(
    new UpdateTimeToLiveCommand({
      TableName: tableName,
      TimeToLiveSpecification: { AttributeName: attribute, Enabled: true },
    }),
  );
}
