import {
  CreateTableCommand,
  DeleteTableCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
} from "@aws-sdk/client-dynamodb";
import { UpdateServiceCommand } from "@aws-sdk/client-ecs";
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { start, type LeaseTable } from "../../shared/lease/index.ts";
import { serverless } from "../deploy/support/package.ts";
import { until } from "../local/stack/until.ts";
import { Account } from "./account.ts";
import { deliver, ruleMatches, taskStopped } from "./ecs-event.ts";
import { startEmulator, type Emulator } from "./emulator.ts";
import { startFeed, type Feed } from "./feed.ts";
import { startTaskRunner, type Task, type TaskRunner } from "./tasks.ts";

/**
 * A real `serverless deploy` to an emulated account, the deployed functions, and real workers with the deployed task's
 * settings. What the emulator cannot show is not tested here; docs/operations.md says what that is.
 */

const STAGE = "emulated";
const SERVICE = `ws-fleet-${STAGE}`;
const CONNECTIONS = Array.from({ length: 6 }, (_, i) => `connection-${i}`);
/** Longer than everything below may take: what recovers in less was not recovered by expiry. */
const LEASE_MS = 120_000;
/** A worker looks for orphans by itself only after this: what is taken in less came by a hint. */
const QUIET_MS = 600_000;
const PARAMS = [
  "workerImage=registry.example/worker:1",
  `leaseMs=${LEASE_MS}`,
  `quietQueueMs=${QUIET_MS}`,
  "metricsMs=5000",
  // The emulator knows no Application Auto Scaling.
  "autoscaling=false",
  "tableDeletionPolicy=Delete",
  "tableDeletionProtection=false",
];

let emulator: Emulator;
let account: Account;
let feed: Feed;
let runner: TaskRunner | undefined;
let table: LeaseTable;
const tasks: Task[] = [];

before(async () => {
  emulator = await startEmulator();
  account = new Account(emulator);
  table = { client: account.dynamoDb, tableName: `${SERVICE}-connections` };
  feed = await startFeed();
});
after(async () => {
  await runner?.stop();
  await feed.stop();
  await emulator.stop();
});

const framework = (command: string, params: readonly string[] = []) =>
  serverless([command, "--stage", STAGE, ...params.map((param) => `--param=${param}`)], {
    ...emulator.env,
    // No Docker engine for anybody here.
    DOCKER_HOST: "unix:///nowhere/docker.sock",
  });

async function ownerOf(id: string): Promise<string | undefined> {
  const { Item } = await account.dynamoDb.send(
    new GetItemCommand({ TableName: table.tableName, Key: { connection_id: { S: id } } }),
  );
  return Item?.["lease_owner"]?.S;
}

async function epochOf(id: string): Promise<string | undefined> {
  const { Item } = await account.dynamoDb.send(
    new GetItemCommand({ TableName: table.tableName, Key: { connection_id: { S: id } } }),
  );
  return Item?.["lease_epoch"]?.N;
}

async function allOwnedBy(owners: readonly Task[]): Promise<boolean> {
  const found = await Promise.all(CONNECTIONS.map(ownerOf));
  const ids = new Set(owners.map(({ id }) => id));
  return found.every((owner) => owner !== undefined && ids.has(owner));
}

const allOpenOnce = (): boolean => CONNECTIONS.every((id) => feed.openFor(id) === 1);

describe("serverless deploy", { timeout: 600_000 }, () => {
  it("without an image and without a Docker engine creates nothing", async () => {
    const { code, output } = await framework("deploy");
    assert.notEqual(code, 0);
    assert.match(output, /image cannot be built.*Nothing was deployed.*--param="workerImage=/s);
    assert.deepEqual(await account.named(SERVICE), []);
  });

  it("with timings that contradict each other creates nothing", async () => {
    const { code, output } = await framework("deploy", [...PARAMS, "heartbeatMs=100000"]);
    assert.notEqual(code, 0);
    assert.match(output, /parameters refused:\s+- heartbeatMs, .*2 × longest heartbeat/);
    assert.deepEqual(await account.named(SERVICE), []);
  });

  it("with a parameter that does not exist creates nothing", async () => {
    const { code, output } = await framework("deploy", [...PARAMS, "leasMs=20000"]);
    assert.notEqual(code, 0);
    assert.match(output, /parameters refused:\s+- leasMs: no such parameter/);
    assert.deepEqual(await account.named(SERVICE), []);
  });

  it("beside a table of a former deployment creates nothing", async () => {
    const TableName = `${SERVICE}-messages`;
    await account.dynamoDb.send(
      new CreateTableCommand({
        TableName,
        KeySchema: [{ AttributeName: "connection_id", KeyType: "HASH" }],
        AttributeDefinitions: [{ AttributeName: "connection_id", AttributeType: "S" }],
        BillingMode: "PAY_PER_REQUEST",
      }),
    );
    const { code, output } = await framework("deploy", PARAMS);
    assert.notEqual(code, 0);
    assert.match(output, new RegExp(`still there: ${TableName}\n.*Nothing was deployed`, "s"));
    assert.deepEqual(await account.named(SERVICE), [TableName]);
    await account.dynamoDb.send(new DeleteTableCommand({ TableName }));
  });

  it("creates the whole stack", async () => {
    const { code, output } = await framework("deploy", PARAMS);
    assert.equal(code, 0, output);
    const resources = await account.resources(SERVICE);
    for (const [id, status] of resources) assert.match(status, /^(CREATE|UPDATE)_COMPLETE$/, id);
    for (const id of ["ConnectionsTable", "HintQueue", "WorkerService", "Dashboard", "OrphansAlarm", "SubnetB"]) {
      assert.ok(resources.has(id), id);
    }
  });
});

describe("the deployed fleet", { timeout: 600_000 }, () => {
  it("opens new connections through stream, function, queue and worker", async () => {
    runner = await startTaskRunner(account.ecs, `${SERVICE}-worker`, SERVICE, emulator.env);
    tasks.push(runner.start(), runner.start());
    await until("both workers run", () => tasks.every((task) => task.output().includes("worker started")), 60_000);
    for (const connectionId of CONNECTIONS) await start(table, { connectionId, wsUrl: feed.urlOf(connectionId) });
    await until("every connection is open once", allOpenOnce, 60_000);
    assert.ok(await allOwnedBy(tasks));
    const lines = await account.logLines(`${SERVICE}-desired-state`);
    assert.ok(lines.some((line) => line.includes("started connections hinted")));
  });

  it("stores what the feeds say", async () => {
    for (const id of CONNECTIONS) {
      await until(`rows of ${id}`, async () => {
        const { Items } = await account.dynamoDb.send(
          new QueryCommand({
            TableName: `${SERVICE}-messages`,
            KeyConditionExpression: "connection_id = :id",
            ExpressionAttributeValues: { ":id": { S: id } },
          }),
        );
        return Items?.some(({ payload }) => payload?.S === `a line for ${id}`) === true;
      });
    }
  });

  it("does not invoke the stream's function for heartbeats", async () => {
    const expiryOf = async (id: string): Promise<number> => {
      const { Item } = await account.dynamoDb.send(
        new GetItemCommand({ TableName: table.tableName, Key: { connection_id: { S: id } } }),
      );
      return Number(Item?.["lease_expires_at_ms"]?.N);
    };
    const invocations = await account.invocations(`${SERVICE}-desired-state`);
    const first = await Promise.all(CONNECTIONS.map(expiryOf));
    await until(
      "two heartbeats of every connection",
      async () => {
        const now = await Promise.all(CONNECTIONS.map(expiryOf));
        return now.every((expiry, i) => expiry - (first[i] ?? 0) > 8_000);
      },
      60_000,
    );
    // A record that does pass the filter, behind all those heartbeats: when it has arrived, they would have as well.
    const Item = { connection_id: { S: "marker" }, desired_state: { S: "STARTED" }, lease_expires_at_ms: { N: "0" } };
    await account.dynamoDb.send(new PutItemCommand({ TableName: table.tableName, Item }));
    await until("the marker", async () => (await account.invocations(`${SERVICE}-desired-state`)) > invocations);
    await delay(1_000);
    assert.equal(await account.invocations(`${SERVICE}-desired-state`), invocations + 1);
  });

  it("hears of this service's ended tasks alone", async () => {
    const event = taskStopped("arn:aws:ecs:us-east-1:0:task/c/1", "arn:aws:ecs:us-east-1:0:cluster/other", SERVICE, 1);
    assert.equal(await ruleMatches(account.events, event), false, "another cluster");
    const clusterArn = `arn:aws:ecs:us-east-1:000000000000:cluster/${SERVICE}`;
    const other = taskStopped("arn:aws:ecs:us-east-1:0:task/c/1", clusterArn, "another-service", 1);
    assert.equal(await ruleMatches(account.events, other), false, "another service");
    const running = taskStopped("arn:aws:ecs:us-east-1:0:task/c/1", clusterArn, SERVICE, 1);
    const stopping = { ...running, detail: { ...running.detail, lastStatus: "RUNNING" } };
    assert.equal(await ruleMatches(account.events, stopping), false, "a task that is only asked to stop");
  });

  it("takes over a killed task's connections once its event comes", async () => {
    // One of the two may have taken everything.
    const owner = await ownerOf(CONNECTIONS[0] ?? "");
    const victim = tasks.find(({ id }) => id === owner);
    const survivor = tasks.find(({ id }) => id !== owner);
    assert.ok(victim !== undefined && survivor !== undefined);
    const exitCode = await victim.kill();
    const clusterArn = `arn:aws:ecs:us-east-1:000000000000:cluster/${SERVICE}`;
    const event = taskStopped(victim.arn, clusterArn, SERVICE, exitCode);
    assert.equal(await ruleMatches(account.events, event), true);
    const sentMs = performance.now();
    await deliver(account.events, event);
    await until("the survivor holds everything", async () => allOpenOnce() && (await allOwnedBy([survivor])), 60_000);
    assert.ok(performance.now() - sentMs < LEASE_MS / 2, "long before any lease ended");
    // Its log is there when its second pass over the index is done.
    await until("the function's own word", async () => {
      const lines = await account.logLines(`${SERVICE}-task-stopped`);
      return lines.some((line) => line.includes("leases of a dead task released") && line.includes(victim.id));
    });
  });

  it("runs its schedules, and metrics of functions and workers arrive", async () => {
    // A minute until they begin, and their log is there when they end, most of a minute later.
    for (const name of ["reconcile", "fleet-metrics"]) {
      await until(`${name} has run`, async () => (await account.invocations(`${SERVICE}-${name}`)) > 0, 180_000);
    }
    const wanted = ["StartedConnections", "OwnedConnections", "RunningTasks", "HintQueueDepth", "ActiveConnections"];
    await until(
      "metrics",
      async () => {
        const metrics = await account.metrics(SERVICE);
        return wanted.every((name) => metrics.has(name));
      },
      90_000,
    );
    const errors = (await account.logLines(`${SERVICE}-fleet-metrics`)).filter((line) =>
      line.includes('"level":"ERROR"'),
    );
    assert.deepEqual(errors, []);
  });

  it("gives everything back when its last task is asked to end", async () => {
    const owner = await ownerOf(CONNECTIONS[0] ?? "");
    const survivor = tasks.find(({ id }) => id === owner);
    assert.ok(survivor !== undefined);
    assert.equal(await survivor.terminate(), 0, survivor.output());
    assert.deepEqual(
      await Promise.all(CONNECTIONS.map(ownerOf)),
      CONNECTIONS.map(() => undefined),
    );
    assert.ok(CONNECTIONS.every((id) => feed.openFor(id) === 0));
  });
});

describe("another deployment", { timeout: 600_000 }, () => {
  it("of the same changes nothing", async () => {
    const { code, output } = await framework("deploy", PARAMS);
    assert.equal(code, 0, output);
    assert.match(output, /No changes to deploy/);
  });

  it("with other timings reaches functions and tasks, and keeps what is there", async () => {
    const mappings = await account.triggers();
    const before = await account.service(SERVICE);
    // As scaling would.
    await account.ecs.send(new UpdateServiceCommand({ cluster: SERVICE, service: SERVICE, desiredCount: 3 }));
    const { code, output } = await framework("deploy", [...PARAMS, "heartbeatMs=6000"]);
    assert.equal(code, 0, output);
    assert.equal((await account.environmentOf(`${SERVICE}-reconcile`))["WS_FLEET_HEARTBEAT_MS"], "6000");
    const service = await account.service(SERVICE);
    assert.notEqual(service.taskDefinition, before.taskDefinition);
    assert.equal(service.desiredCount, 3, "the number of tasks that scaling has chosen");
    assert.deepEqual(await account.triggers(), mappings, "the same trigger reads on");
    const items = await Promise.all(CONNECTIONS.map((id) => epochOf(id)));
    assert.ok(items.every((epoch) => Number(epoch) > 0));
  });
});

describe("serverless remove", { timeout: 600_000 }, () => {
  it("leaves nothing", async () => {
    assert.notDeepEqual(await account.named(SERVICE), []);
    const { code, output } = await framework("remove", PARAMS);
    assert.equal(code, 0, output);
    assert.deepEqual(await account.named(SERVICE), []);
    assert.equal(await account.stackStatus(SERVICE), undefined);
  });

  it("can be followed by a deployment of the same stage, and that be removed", async () => {
    const { code, output } = await framework("deploy", PARAMS);
    assert.equal(code, 0, output);
    assert.ok((await account.named(SERVICE)).includes(`${SERVICE}-connections`));
    const removed = await framework("remove", PARAMS);
    assert.equal(removed.code, 0, removed.output);
    assert.deepEqual(await account.named(SERVICE), []);
  });
});
