import { startEmbeddedDynamoDb } from "../../support/embedded-dynamodb.ts";
import { leaseContract } from "./contract.ts";

leaseContract("embedded server", async () => {
  const dynamoDb = await startEmbeddedDynamoDb();
  const tableName = await dynamoDb.createTable("ConnectionsTable");
  return { table: { client: dynamoDb.client, tableName }, close: dynamoDb.stop };
});
