import {
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  PutItemCommand,
} from "@aws-sdk/client-dynamodb";
import { GetQueueAttributesCommand, SQSClient } from "@aws-sdk/client-sqs";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { describe, it } from "node:test";
import { TIMING_DEFINITIONS } from "../../../shared/config/definitions.ts";
import type { Logger } from "../../../shared/logger.ts";
import { silentLogger } from "../../../shared/logger.ts";
import { startStack, type Stack } from "../../../local/stack/stack.ts";
import { alive, until } from "./until.ts";

const projectRoot = path.join(import.meta.dirname, "../../..");
const env = { PATH: process.env["PATH"], HOME: process.env["HOME"] };

/** Keeps the ids of the processes that were started. */
function recordingLogger(): { logger: Logger; pids: number[] } {
  const pids: number[] = [];
  const debug = (fields: object): void => {
    if ("pid" in fields && typeof fields.pid === "number") pids.push(fields.pid);
  };
  return { logger: { ...silentLogger, debug }, pids };
}

function dynamoDb(stack: Stack): DynamoDBClient {
  return new DynamoDBClient({
    endpoint: stack.dynamodbEndpoint,
    region: stack.region,
    credentials: stack.credentials!,
  });
}

function sqs(stack: Stack): SQSClient {
  return new SQSClient({
    endpoint: stack.sqsEndpoint,
    region: stack.region,
    credentials: stack.credentials!,
    maxAttempts: 1,
  });
}

describe("the embedded stack", () => {
  it("serves the tables and queues of serverless.yml, and leaves nothing behind", async (t) => {
    const { logger, pids } = recordingLogger();
    const stack = await startStack({ projectRoot, env, logger });
    t.after(() => stack.stop());
    assert.equal(pids.length, 2);
    for (const endpoint of [stack.dynamodbEndpoint, stack.sqsEndpoint, stack.hintQueueUrl]) {
      assert.equal(new URL(endpoint).hostname, "127.0.0.1");
    }

    const client = dynamoDb(stack);
    for (const { createInput, tableName, timeToLiveAttribute } of stack.file.tables) {
      const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName }));
      assert.ok(Table);
      assert.deepEqual(Table.KeySchema, createInput.KeySchema);
      assert.deepEqual(
        Table.GlobalSecondaryIndexes?.map(({ IndexName, KeySchema, Projection }) => ({
          IndexName,
          KeySchema,
          Projection,
        })),
        createInput.GlobalSecondaryIndexes,
      );
      assert.equal(Table.StreamSpecification?.StreamViewType, createInput.StreamSpecification?.StreamViewType);
      const ttl = await client.send(new DescribeTimeToLiveCommand({ TableName: tableName }));
      assert.equal(ttl.TimeToLiveDescription?.AttributeName, timeToLiveAttribute);
    }
    client.destroy();

    const queueClient = sqs(stack);
    const hints = await queueClient.send(
      new GetQueueAttributesCommand({ QueueUrl: stack.hintQueueUrl, AttributeNames: ["All"] }),
    );
    const dead = await queueClient.send(
      new GetQueueAttributesCommand({ QueueUrl: stack.dlqUrl, AttributeNames: ["QueueArn", "MessageRetentionPeriod"] }),
    );
    queueClient.destroy();
    assert.equal(hints.Attributes?.MessageRetentionPeriod, "60");
    assert.equal(hints.Attributes.VisibilityTimeout, "3");
    assert.equal(hints.Attributes.ReceiveMessageWaitTimeSeconds, "10");
    assert.deepEqual(JSON.parse(hints.Attributes.RedrivePolicy ?? ""), {
      deadLetterTargetArn: dead.Attributes?.QueueArn,
      maxReceiveCount: 50,
    });
    assert.equal(dead.Attributes?.MessageRetentionPeriod, "1209600");

    await stack.stop();
    assert.deepEqual(pids.filter(alive), []);
    await assert.rejects(fetch(stack.dynamodbEndpoint), "the server itself is gone, not only its wrapper");
    await assert.rejects(fetch(stack.sqsEndpoint));
  });

  it("gives the processes of the fleet everything and nothing of the user's AWS settings", async (t) => {
    const userEnv = {
      ...env,
      AWS_PROFILE: "mine",
      AWS_SESSION_TOKEN: "secret",
      AWS_ACCESS_KEY_ID: "AKIAMINE",
      EDITOR: "vi",
    };
    const stack = await startStack({ projectRoot, env: userEnv, logger: silentLogger });
    t.after(() => stack.stop());
    const { PATH, HOME, ...rest } = stack.env;
    assert.deepEqual([PATH, HOME], [env.PATH, env.HOME]);
    assert.deepEqual(rest, {
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "local",
      AWS_SECRET_ACCESS_KEY: "local",
      AWS_ENDPOINT_URL_DYNAMODB: stack.dynamodbEndpoint,
      AWS_ENDPOINT_URL_SQS: stack.sqsEndpoint,
      WS_FLEET_CONNECTIONS_TABLE: "ws-fleet-local-connections",
      WS_FLEET_MESSAGES_TABLE: "ws-fleet-local-messages",
      WS_FLEET_HINT_QUEUE_URL: stack.hintQueueUrl,
      WS_FLEET_DLQ_URL: stack.dlqUrl,
      WS_FLEET_CLUSTER: "ws-fleet-local",
      WS_FLEET_SERVICE: "ws-fleet-local",
      WS_FLEET_LOG_LEVEL: "info",
      ...Object.fromEntries(Object.values(TIMING_DEFINITIONS).map((timing) => [timing.env, timing.default])),
    });
  });

  it("uses named endpoints, creates what is missing there and stops nothing", async (t) => {
    const owner = await startStack({ projectRoot, env, logger: silentLogger });
    t.after(() => owner.stop());
    const { logger, pids } = recordingLogger();
    const named = {
      ...env,
      AWS_ENDPOINT_URL_DYNAMODB: `${owner.dynamodbEndpoint}/`,
      AWS_ENDPOINT_URL_SQS: owner.sqsEndpoint,
    };
    const guest = await startStack({ projectRoot, env: named, logger, stage: "guest" });
    assert.deepEqual(pids, []);
    const again = await startStack({ projectRoot, env: named, logger, stage: "guest" });
    assert.deepEqual(again.references, guest.references);
    await guest.stop();

    const client = dynamoDb(owner);
    t.after(() => client.destroy());
    const { Table } = await client.send(new DescribeTableCommand({ TableName: "ws-fleet-guest-connections" }));
    assert.equal(Table?.TableStatus, "ACTIVE");
    await assert.rejects(
      startStack({ projectRoot, env: named, logger, withoutQueue: true }),
      /needs the embedded queue/,
    );
  });

  it("can play a broken queue", async (t) => {
    const stack = await startStack({ projectRoot, env, logger: silentLogger, withoutQueue: true });
    t.after(() => stack.stop());
    const client = sqs(stack);
    t.after(() => client.destroy());
    await assert.rejects(
      client.send(new GetQueueAttributesCommand({ QueueUrl: stack.hintQueueUrl, AttributeNames: ["All"] })),
      /ECONNREFUSED/,
    );
    const store = dynamoDb(stack);
    t.after(() => store.destroy());
    await store.send(new PutItemCommand({ TableName: stack.connectionsTable, Item: { connection_id: { S: "c" } } }));
  });

  it("says what to do when there is no DynamoDB, and leaves no process", async () => {
    const { logger, pids } = recordingLogger();
    await assert.rejects(
      startStack({ projectRoot, env: { ...env, AWS_ENDPOINT_URL_DYNAMODB: "nonsense" }, logger }),
      /AWS_ENDPOINT_URL_DYNAMODB must be a URL/,
    );
    await assert.rejects(
      startStack({ projectRoot, env: { ...env, AWS_ENDPOINT_URL_SQS: "nonsense" }, logger }),
      /AWS_ENDPOINT_URL_SQS/,
    );
    assert.equal(pids.length, 1, "DynamoDB had started");
    assert.deepEqual(pids.filter(alive), []);
  });

  it("ends, with its database, when its runner is killed outright", async (t) => {
    const runner = spawn(process.execPath, [path.join(import.meta.dirname, "runner.ts"), projectRoot], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    t.after(() => runner.kill("SIGKILL"));
    const [line] = (await once(createInterface({ input: runner.stdout }), "line")) as [string];
    const { pids, folder, endpoint } = JSON.parse(line) as { pids: number[]; folder: string; endpoint: string };
    assert.equal(pids.length, 3, "wrapper, dynoxide and SQS");
    assert.deepEqual(pids.filter(alive), pids);
    assert.ok(existsSync(folder));

    runner.kill("SIGKILL");
    await until("the children to end", () => !pids.some(alive) && !existsSync(folder));
    await assert.rejects(fetch(endpoint));
  });
});
