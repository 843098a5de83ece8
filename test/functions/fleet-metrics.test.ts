import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { LeaseTable } from "../../shared/lease/index.ts";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../support/embedded-dynamodb.ts";
import { connection, ownedBy, store } from "./support/connections.ts";
import { startEmbeddedSqs, type EmbeddedSqs } from "./support/embedded-sqs.ts";
import { httpEndpoint, type HttpEndpoint } from "./support/http-endpoint.ts";
import { coldStart, lambdaContext, SCHEDULED_EVENT } from "./support/invocation.ts";

/** Enough for one round of the 30 s interval. */
const ONE_ROUND_MS = 20_000;

let dynamoDb: EmbeddedDynamoDb;
let sqs: EmbeddedSqs;
let table: LeaseTable;
let queueUrl: string;
const endpoints: HttpEndpoint[] = [];
before(async () => {
  dynamoDb = await startEmbeddedDynamoDb();
  sqs = await startEmbeddedSqs();
  table = { client: dynamoDb.client, tableName: await dynamoDb.createTable("ConnectionsTable") };
  const queue = await sqs.createQueue();
  queueUrl = queue.url;
  await queue.hints.sendBatch(["{}", "{}", "{}"]);
});
after(async () => {
  await Promise.all(endpoints.map((endpoint) => endpoint.close()));
  await dynamoDb.stop();
  await sqs.stop();
});

async function serve(status: number, answer: unknown): Promise<HttpEndpoint> {
  const endpoint = await httpEndpoint(status, answer);
  endpoints.push(endpoint);
  return endpoint;
}

const load = (metrics: HttpEndpoint, tasks: HttpEndpoint) =>
  coldStart("fleet-metrics", {
    WS_FLEET_CONNECTIONS_TABLE: table.tableName,
    WS_FLEET_HINT_QUEUE_URL: queueUrl,
    WS_FLEET_CLUSTER: "ws-fleet-test",
    WS_FLEET_METRICS_URL: metrics.url,
    WS_FLEET_RUNNING_TASKS_URL: tasks.url,
  });

interface Posted {
  readonly source: string;
  readonly data: readonly { readonly name: string; readonly values: readonly number[] }[];
}
const valuesOf = ({ data }: Posted) => Object.fromEntries(data.map(({ name, values }) => [name, values[0]]));

describe("fleet-metrics", () => {
  it("asks table, queue and tasks, and hands the figures over", async () => {
    await store(table, connection("free"), connection("held", ownedBy("task", Date.now() + 600_000)));
    const metrics = await serve(200, {});
    const handler = await load(metrics, await serve(200, { runningTasks: 2 }));
    await handler(SCHEDULED_EVENT, lambdaContext(ONE_ROUND_MS));
    const posted = metrics.received as Posted[];
    assert.equal(posted.length, 1);
    assert.equal(posted[0]?.source, "fleet-metrics");
    assert.deepEqual(valuesOf(posted[0]), {
      StartedConnections: 2,
      OwnedConnections: 1,
      OrphanedConnections: 1,
      OldestOrphanAge: 0,
      ParkedConnections: 0,
      HintQueueDepth: 3,
      RunningTasks: 2,
      HintBacklogPerTask: 1.5,
      ConnectionsPerTask: 1,
    });
  });

  it("asks ECS and publishes to CloudWatch where no local endpoint is named", async () => {
    const ecs = await serve(200, { services: [{ serviceName: "ws-fleet-test", runningCount: 4 }], failures: [] });
    const cloudWatch = await serve(200, {});
    process.env["AWS_ENDPOINT_URL_ECS"] = ecs.url;
    process.env["AWS_ENDPOINT_URL_CLOUDWATCH"] = cloudWatch.url;
    const handler = await coldStart("fleet-metrics", {
      WS_FLEET_CONNECTIONS_TABLE: table.tableName,
      WS_FLEET_HINT_QUEUE_URL: queueUrl,
      WS_FLEET_CLUSTER: "ws-fleet-test-cluster",
    });
    await handler(SCHEDULED_EVENT, lambdaContext(ONE_ROUND_MS));
    assert.deepEqual(ecs.received, [{ cluster: "ws-fleet-test-cluster", services: ["ws-fleet-test"] }]);
    const [put] = cloudWatch.received as {
      MetricData: { MetricName: string; Values: number[]; Dimensions: object[] }[];
    }[];
    assert.equal(put?.MetricData.length, 9);
    const tasks = put.MetricData.find(({ MetricName }) => MetricName === "RunningTasks");
    assert.deepEqual(tasks?.Values, [4]);
    assert.deepEqual(tasks.Dimensions, [{ Name: "Service", Value: "ws-fleet-test" }]);
  });

  it("publishes the rest, and fails, when nobody knows the running tasks", async () => {
    const metrics = await serve(200, {});
    const handler = await load(metrics, await serve(200, { tasks: 2 }));
    await assert.rejects(handler(SCHEDULED_EVENT, lambdaContext(ONE_ROUND_MS)), /every measurement .* failed/);
    assert.equal(valuesOf((metrics.received as Posted[])[0]!)["StartedConnections"], 2);
  });

  it("fails when the metrics are not taken", async () => {
    const handler = await load(await serve(500, {}), await serve(200, { runningTasks: 2 }));
    await assert.rejects(handler(SCHEDULED_EVENT, lambdaContext(ONE_ROUND_MS)), (error: Error) => {
      assert.match((error.cause as Error).message, /metrics endpoint answered 500/);
      return true;
    });
  });

  it("refuses an event of another kind, and does not start without its settings", async () => {
    const handler = await load(await serve(200, {}), await serve(200, { runningTasks: 2 }));
    await assert.rejects(handler({ source: "aws.ecs" }, lambdaContext(ONE_ROUND_MS)), /source: .*detail-type: /);
    await assert.rejects(coldStart("fleet-metrics", { WS_FLEET_METRICS_URL: "ftp://x" }), (error: Error) => {
      assert.match(error.message, /WS_FLEET_METRICS_URL="ftp:\/\/x"/);
      assert.match(error.message, /WS_FLEET_CLUSTER: must be set/);
      return true;
    });
  });
});
