import { BatchWriteItemCommand, GetItemCommand, PutItemCommand, QueryCommand } from "@aws-sdk/client-dynamodb";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { leaseOf, type RawItem } from "../../../shared/connection/item.ts";
import { buildWorker } from "../../../worker/build.ts";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../../support/embedded-dynamodb.ts";
import { startServer, type TestServer } from "../../support/http-server.ts";
import { startQueues, type EmbeddedQueues, type Queues } from "./queues.ts";
import { WorkerProcess, type ProcessOptions } from "./worker-process.ts";

/** Timings that keep the protocol's relations and let a lease expire within a test. */
const TIMINGS = {
  WS_FLEET_LEASE_MS: "5000",
  WS_FLEET_HEARTBEAT_MS: "500",
  WS_FLEET_MARGIN_MS: "1000",
  WS_FLEET_SKEW_MS: "200",
  WS_FLEET_ATTEMPT_TIMEOUT_MS: "800",
  WS_FLEET_HINT_VISIBILITY_MS: "2000",
  WS_FLEET_ACQUIRE_BUDGET_MS: "1500",
  WS_FLEET_LONG_POLL_MS: "2000",
};

/** Real worker processes against embedded servers: everything of a fleet except its control plane. */
export class Fleet {
  readonly dynamoDb: EmbeddedDynamoDb;
  readonly queues: Queues;
  readonly connectionsTable: string;
  readonly messagesTable: string;
  readonly folder: string;
  readonly #sqs: EmbeddedQueues;
  readonly #metrics: TestServer;
  readonly #processes: WorkerProcess[] = [];

  private constructor(parts: {
    dynamoDb: EmbeddedDynamoDb;
    sqs: EmbeddedQueues;
    queues: Queues;
    metrics: TestServer;
    folder: string;
    tables: readonly [string, string];
  }) {
    this.dynamoDb = parts.dynamoDb;
    this.#sqs = parts.sqs;
    this.queues = parts.queues;
    this.#metrics = parts.metrics;
    this.folder = parts.folder;
    [this.connectionsTable, this.messagesTable] = parts.tables;
  }

  static async start(): Promise<Fleet> {
    const folder = await mkdtemp(path.join(tmpdir(), "ws-fleet-worker-"));
    const [dynamoDb, sqs] = await Promise.all([startEmbeddedDynamoDb(), startQueues(), buildWorker(folder)]);
    const metrics = await startServer((response) => response.writeHead(200).end());
    const tables = [
      await dynamoDb.createTable("ConnectionsTable"),
      await dynamoDb.createTable("MessagesTable"),
    ] as const;
    return new Fleet({ dynamoDb, sqs, queues: await sqs.create(), metrics, folder, tables });
  }

  get sqsEndpoint(): string {
    return this.#sqs.endpoint;
  }

  /** What a task's environment holds. */
  environment(more: Record<string, string> = {}): Record<string, string> {
    return {
      PATH: process.env["PATH"] ?? "",
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
      AWS_ENDPOINT_URL_DYNAMODB: this.dynamoDb.endpoint,
      AWS_ENDPOINT_URL_SQS: this.#sqs.endpoint,
      WS_FLEET_CONNECTIONS_TABLE: this.connectionsTable,
      WS_FLEET_MESSAGES_TABLE: this.messagesTable,
      WS_FLEET_HINT_QUEUE_URL: this.queues.url,
      WS_FLEET_DLQ_URL: this.queues.dlqUrl,
      WS_FLEET_SERVICE: "test",
      WS_FLEET_METRICS_URL: this.#metrics.url,
      WS_FLEET_HEALTH_PORT: "0",
      ...TIMINGS,
      ...more,
    };
  }

  /** Starts a supervisor with its worker, as a task does; by default from the bundle that goes into the container. */
  spawn(options: Partial<ProcessOptions> = {}): WorkerProcess {
    const one = new WorkerProcess({
      entry: path.join(this.folder, "supervisor.mjs"),
      journalFile: path.join(this.folder, `journal-${this.#processes.length}.jsonl`),
      ...options,
      environment: this.environment(options.environment),
    });
    this.#processes.push(one);
    return one;
  }

  async connect(id: string, wsUrl: string, attributes: RawItem = {}): Promise<void> {
    await this.put(id, wsUrl, attributes);
    await this.queues.hint(id);
  }

  /** Stores a free connection of which no hint tells. */
  async put(id: string, wsUrl: string, attributes: RawItem = {}): Promise<void> {
    await this.dynamoDb.client.send(
      new PutItemCommand({ TableName: this.connectionsTable, Item: free(id, wsUrl, attributes) }),
    );
  }

  /** Many at once. */
  async connectAll(ids: readonly string[], wsUrl: string): Promise<void> {
    for (let from = 0; from < ids.length; from += 25) {
      const puts = ids.slice(from, from + 25).map((id) => ({ PutRequest: { Item: free(id, wsUrl, {}) } }));
      await this.dynamoDb.client.send(new BatchWriteItemCommand({ RequestItems: { [this.connectionsTable]: puts } }));
    }
    await Promise.all(ids.map((id) => this.queues.hint(id)));
  }

  async item(id: string): Promise<RawItem> {
    const Key = { connection_id: { S: id } };
    const request = new GetItemCommand({ TableName: this.connectionsTable, Key, ConsistentRead: true });
    return (await this.dynamoDb.client.send(request)).Item ?? {};
  }

  async lease(id: string): Promise<ReturnType<typeof leaseOf>> {
    return leaseOf(await this.item(id));
  }

  /** Payloads of the rows of one connection in the order of their keys. */
  async stored(id: string): Promise<{ readonly seq: bigint; readonly payload: string }[]> {
    const { Items = [] } = await this.dynamoDb.client.send(
      new QueryCommand({
        TableName: this.messagesTable,
        KeyConditionExpression: "connection_id = :id",
        ExpressionAttributeValues: { ":id": { S: id } },
        ConsistentRead: true,
      }),
    );
    return Items.map((item) => ({ seq: BigInt(item["seq"]?.N ?? "-1"), payload: item["payload"]?.S ?? "" }));
  }

  async stop(): Promise<void> {
    for (const one of this.#processes) await one.destroy();
    await Promise.all([this.#metrics.stop(), this.#sqs.stop(), this.dynamoDb.stop()]);
    await rm(this.folder, { recursive: true, force: true });
  }
}

function free(id: string, wsUrl: string, attributes: RawItem): RawItem {
  return {
    connection_id: { S: id },
    desired_state: { S: "STARTED" },
    ws_url: { S: wsUrl },
    lease_expires_at_ms: { N: "0" },
    ...attributes,
  };
}
