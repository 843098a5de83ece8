import { CreateTableCommand } from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import { it } from "node:test";
import KeptTables, { tableNames } from "../../deploy/plugins/kept-tables.ts";
import type { Serverless } from "../../deploy/plugins/osls.ts";
import { startEmbeddedDynamoDb } from "../support/embedded-dynamodb.ts";

it("the removal of a stage names the tables that stay, and says nothing when none does", async (t) => {
  const dynamoDb = await startEmbeddedDynamoDb();
  t.after(() => dynamoDb.stop());
  const [TableName = ""] = tableNames("ws-fleet", "kept");
  await dynamoDb.client.send(
    new CreateTableCommand({
      TableName,
      KeySchema: [{ AttributeName: "connection_id", KeyType: "HASH" }],
      AttributeDefinitions: [{ AttributeName: "connection_id", AttributeType: "S" }],
      BillingMode: "PAY_PER_REQUEST",
    }),
  );

  const noticed = async (stage: string): Promise<string[]> => {
    const said: string[] = [];
    const provider = {
      getStage: () => stage,
      getAwsSdkV3Config: () => Promise.resolve({ endpoint: dynamoDb.endpoint, region: "us-east-1" }),
    };
    const serverless = { service: { service: "ws-fleet" }, getProvider: () => provider } as unknown as Serverless;
    const log = { notice: (text: string) => void said.push(text), info: () => undefined };
    await new KeptTables(serverless, {}, { log }).hooks["after:remove:remove"]();
    return said;
  };
  assert.deepEqual(await noticed("kept"), [`These tables stay, with their items and their costs: ${TableName}`]);
  assert.deepEqual(await noticed("other"), []);
});
