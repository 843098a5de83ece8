import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  DescribeTableCommand,
  PutItemCommand,
  QueryCommand,
  type DynamoDBClient,
} from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { dynamoDbClient } from "../../../shared/aws/clients.ts";
import { observeDates, type DateObservation } from "../../../shared/aws/date-header.ts";
import { countUsage, type DynamoDbUsage } from "../../../shared/aws/usage.ts";
import { acquire, release, renew, type LeaseTable } from "../../../shared/lease/index.ts";
import { pointSdkAt, startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../../support/embedded-dynamodb.ts";
import { startLossyProxy, type LossyProxy } from "../../support/lossy-proxy.ts";
import { EPOCH, freeItem, heldItem, LEASE_MS, ME, NOW_MS, SKEW_MS } from "../lease/contract/items.ts";

const EPOCH_START = EPOCH.toString();

describe("what the client's answers tell", () => {
  let dynamoDb: EmbeddedDynamoDb;
  let proxy: LossyProxy;
  let client: DynamoDBClient;
  let table: LeaseTable;
  let dates: DateObservation[];
  let usage: DynamoDbUsage;
  let readings = 0;

  before(async () => {
    dynamoDb = await startEmbeddedDynamoDb();
    const tableName = await dynamoDb.createTable("ConnectionsTable");
    proxy = await startLossyProxy(dynamoDb.endpoint);
    pointSdkAt(proxy.endpoint);
    client = dynamoDbClient({ attemptTimeoutMs: 20_000, attempts: 3, maxSockets: 4 });
    table = { client, tableName };
    observeDates(
      client,
      () => ++readings,
      (date) => dates.push(date),
    );
    usage = { requests: 0, readUnits: 0, writeUnits: 0 };
    countUsage(client, usage);
  });
  after(async () => {
    client.destroy();
    await proxy.stop();
    await dynamoDb.stop();
  });
  beforeEach(() => {
    dates = [];
    Object.assign(usage, { requests: 0, readUnits: 0, writeUnits: 0 });
  });

  const put = (Item: ReturnType<typeof freeItem>) =>
    client.send(new PutItemCommand({ TableName: table.tableName, Item }));
  const take = (connectionId: string) =>
    acquire(table, { connectionId, owner: ME, nowMs: NOW_MS, leaseMs: LEASE_MS, skewMs: SKEW_MS });

  describe("observeDates", () => {
    it("reports each answer's whole second between two readings of the clock", async () => {
      const beforeMs = Date.now();
      await put(freeItem("dated"));
      const afterMs = Date.now();
      assert.equal(dates.length, 1);
      const [{ dateMs, sentAtMs, receivedAtMs }] = dates as [DateObservation];
      assert.equal(dateMs % 1000, 0);
      assert.ok(dateMs > beforeMs - 1000 && dateMs <= afterMs, `${dateMs} is not within [${beforeMs}, ${afterMs}]`);
      assert.equal(receivedAtMs, sentAtMs + 1, "read once before the attempt and once after it");
    });

    it("reports answers that refuse", async () => {
      assert.equal((await take("nobody-knows-this")).kind, "lost");
      assert.equal(dates.length, 1);
    });

    it("reports each attempt of its own, and none for an attempt without an answer", async () => {
      await put(heldItem("resent"));
      dates = [];
      proxy.lose("UpdateItem", "reset");
      await release(table, { connectionId: "resent", owner: ME, epoch: EPOCH });
      assert.equal(dates.length, 1, "the first attempt had no answer");

      await put(freeItem("broken-date"));
      dates = [];
      proxy.lose("UpdateItem", "error-500");
      await take("broken-date");
      // Node's server dates its 500 as well: two answers.
      assert.equal(dates.length, 2);
      assert.ok(dates[1]!.sentAtMs > dates[0]!.receivedAtMs);
    });
  });

  describe("countUsage", () => {
    it("counts what a lease's life costs in base and index writes", async () => {
      await put(freeItem("billed", { lease_epoch: { N: EPOCH_START } }));
      Object.assign(usage, { requests: 0, readUnits: 0, writeUnits: 0 });

      await take("billed");
      // Base 1, by_state 2 (its key changed), by_owner 1 (a new entry).
      assert.deepEqual(usage, { requests: 1, readUnits: 0, writeUnits: 4 });

      const holder = { connectionId: "billed", owner: ME, epoch: EPOCH + 1n };
      await renew(table, { ...holder, expiresAtMs: NOW_MS + LEASE_MS + 5000 });
      // Base 1, by_state 2, and nothing for by_owner, which a renewal does not touch.
      assert.deepEqual(usage, { requests: 2, readUnits: 0, writeUnits: 7 });

      await release(table, holder);
      assert.deepEqual(usage, { requests: 3, readUnits: 0, writeUnits: 11 });
    });

    it("counts reads apart from writes, and batches over their tables", async () => {
      const Item = freeItem("batched");
      await client.send(new BatchWriteItemCommand({ RequestItems: { [table.tableName]: [{ PutRequest: { Item } }] } }));
      const { readUnits: read, writeUnits } = { ...usage };
      assert.ok(writeUnits >= 1 && read === 0, `${writeUnits} written, ${read} read`);

      const Keys = [{ connection_id: { S: "batched" } }];
      await client.send(new BatchGetItemCommand({ RequestItems: { [table.tableName]: { Keys } } }));
      await client.send(
        new QueryCommand({
          TableName: table.tableName,
          IndexName: "by_state",
          KeyConditionExpression: "desired_state = :s",
          ExpressionAttributeValues: { ":s": { S: "STARTED" } },
        }),
      );
      assert.ok(usage.readUnits >= 1);
      assert.equal(usage.writeUnits, writeUnits);
      assert.equal(usage.requests, 3);
    });

    it("counts every attempt as a request, whatever became of it", async () => {
      await put(freeItem("tried"));
      Object.assign(usage, { requests: 0 });
      proxy.lose("UpdateItem", "reset", 2);
      assert.equal((await take("tried")).kind, "held");
      assert.equal(usage.requests, 3);
    });

    it("leaves requests that cost nothing alone, and keeps what the caller asked for", async () => {
      const described = await client.send(new DescribeTableCommand({ TableName: table.tableName }));
      assert.equal(described.Table?.TableName, table.tableName);
      assert.deepEqual(usage, { requests: 1, readUnits: 0, writeUnits: 0 });

      const answer = await client.send(
        new PutItemCommand({
          TableName: table.tableName,
          Item: freeItem("detailed"),
          ReturnConsumedCapacity: "INDEXES",
        }),
      );
      assert.ok(answer.ConsumedCapacity?.GlobalSecondaryIndexes !== undefined);
      assert.ok(usage.writeUnits > 0);
    });
  });
});
