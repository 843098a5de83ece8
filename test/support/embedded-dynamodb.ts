import { CreateTableCommand, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { randomUUID } from "node:crypto";
import path from "node:path";
import { readServerlessFile } from "../../local/serverless-file.ts";
import { basicEnv } from "../../local/stack/child-env.ts";
import { startDynamoDb } from "../../local/stack/dynamodb.ts";
import { dynamoDbClient, type ClientLimits } from "../../shared/aws/clients.ts";
import { silentLogger } from "../../shared/logger.ts";

/** Patient: these limits are never what a test is about. */
const PATIENT: ClientLimits = { attemptTimeoutMs: 20_000, attempts: 3, maxSockets: 64 };

export interface EmbeddedDynamoDb {
  readonly endpoint: string;
  /** Patient limits, the project's own construction. */
  readonly client: DynamoDBClient;
  /** A fresh table of a name of its own, with the keys and indexes of serverless.yml; without a stream unless asked for. */
  createTable(logicalId: "ConnectionsTable" | "MessagesTable", options?: { stream?: boolean }): Promise<string>;
  readonly stop: () => Promise<void>;
}

/** Starts the embedded server for one test file. Points this process's SDK at it and at nothing else. */
export async function startEmbeddedDynamoDb(): Promise<EmbeddedDynamoDb> {
  const env = { PATH: process.env["PATH"] };
  const server = await startDynamoDb({ env, childEnv: basicEnv(process.env), logger: silentLogger });
  pointSdkAt(server.endpoint);
  const client = dynamoDbClient(PATIENT);
  const { tables } = readServerlessFile({ projectRoot: path.join(import.meta.dirname, "../..") });
  return {
    endpoint: server.endpoint,
    client,
    createTable: async (logicalId, options = {}) => {
      const definition = tables.find((table) => table.logicalId === logicalId);
      if (definition === undefined) throw new Error(`serverless.yml has no table ${logicalId}`);
      const { StreamSpecification: stream, ...input } = definition.createInput;
      const tableName = `${logicalId}-${randomUUID()}`;
      const wanted = options.stream === true && stream !== undefined ? { StreamSpecification: stream } : {};
      await client.send(new CreateTableCommand({ ...input, ...wanted, TableName: tableName }));
      return tableName;
    },
    stop: async () => {
      client.destroy();
      await server.stop();
    },
  };
}

/** Everything that the SDK reads from the environment; clients that are built and used from now on go to `endpoint`. */
export function pointSdkAt(endpoint: string): void {
  process.env["AWS_ENDPOINT_URL_DYNAMODB"] = endpoint;
  process.env["AWS_REGION"] = "us-east-1";
  process.env["AWS_ACCESS_KEY_ID"] = "test";
  process.env["AWS_SECRET_ACCESS_KEY"] = "test";
  delete process.env["AWS_SESSION_TOKEN"];
  delete process.env["AWS_PROFILE"];
}
