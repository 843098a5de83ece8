import path from "node:path";
import { readServerlessFile, type TableDefinition } from "../../local/serverless-file.ts";
import type { LeaseTable } from "../../shared/lease/index.ts";
import { FakeDynamoDb, type FakeDynamoDbOptions } from "./fake-dynamodb/fake-dynamodb.ts";
import { VirtualClock } from "./virtual-clock.ts";

export interface FakeConnections {
  readonly clock: VirtualClock;
  readonly dynamoDb: FakeDynamoDb;
  readonly table: LeaseTable;
}

/** The `connections` table as serverless.yml defines it, in memory, over virtual time. */
export function fakeConnections(
  options: Partial<FakeDynamoDbOptions> & { clock?: VirtualClock } = {},
): FakeConnections {
  const clock = options.clock ?? new VirtualClock();
  const definition = (connectionsTable ??= readConnectionsTable());
  const dynamoDb = new FakeDynamoDb({ tables: [definition.createInput], ...options, clock });
  return { clock, dynamoDb, table: { client: dynamoDb.client(), tableName: definition.tableName } };
}

/** Reading serverless.yml takes longer than most tests. */
let connectionsTable: TableDefinition | undefined;

function readConnectionsTable(): TableDefinition {
  const { tables } = readServerlessFile({ projectRoot: path.join(import.meta.dirname, "../..") });
  const definition = tables.find((table) => table.logicalId === "ConnectionsTable");
  if (definition === undefined) throw new Error("serverless.yml has no ConnectionsTable");
  return definition;
}
