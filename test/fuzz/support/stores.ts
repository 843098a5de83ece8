import path from "node:path";
import { readServerlessFile } from "../../../local/serverless-file.ts";
import type { FakeConnections } from "../../support/fake-connections.ts";
import { FakeDynamoDb } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

/** Read once for all runs of a file: a property needs hundreds of tables. */
const { tables } = readServerlessFile({ projectRoot: path.join(import.meta.dirname, "../../..") });
const named = (logicalId: string) => {
  const definition = tables.find((table) => table.logicalId === logicalId);
  if (definition === undefined) throw new Error(`serverless.yml has no ${logicalId}`);
  return definition;
};
const { createInput, tableName } = named("ConnectionsTable");

/** Names of the tables of every store in memory. */
export const CONNECTIONS_TABLE = tableName;
export const MESSAGES_TABLE = named("MessagesTable").tableName;

/** A fresh `connections` table in memory, over virtual time. */
export function emptyTable(): FakeConnections {
  const clock = new VirtualClock();
  const dynamoDb = new FakeDynamoDb({ clock, tables: [createInput] });
  return { clock, dynamoDb, table: { client: dynamoDb.client(), tableName } };
}
