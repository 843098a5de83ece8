import { BatchWriteItemCommand, DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { DeleteMessageCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import assert from "node:assert/strict";
import path from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { startLambda, type Lambda } from "../../../local/lambda.ts";
import { startStack, type Stack } from "../../../local/stack/stack.ts";
import { startTriggers, type Triggers, type TriggersOptions } from "../../../local/triggers/triggers.ts";
import { silentLogger } from "../../../shared/logger.ts";
import { until } from "./until.ts";

const projectRoot = path.join(import.meta.dirname, "project");

interface Sent {
  readonly id: string;
  /** How many records the invocation had that sent this. */
  readonly of: number;
}

describe("triggers, from a write to the function to the queue", () => {
  let stack: Stack;
  let lambda: Lambda;
  let triggers: Triggers | undefined;
  let store: DynamoDBClient;
  let queue: SQSClient;

  before(async () => {
    stack = await startStack({ projectRoot, env: { PATH: process.env["PATH"] }, logger: silentLogger });
    lambda = await startLambda({
      file: stack.file,
      references: stack.references,
      env: stack.env,
      logger: silentLogger,
    });
    const shared = { region: stack.region, credentials: stack.credentials! };
    store = new DynamoDBClient({ ...shared, endpoint: stack.dynamodbEndpoint });
    queue = new SQSClient({ ...shared, endpoint: stack.sqsEndpoint });
  });
  afterEach(async () => {
    await triggers?.stop();
    triggers = undefined;
  });
  after(async () => {
    store.destroy();
    queue.destroy();
    await lambda.stop();
    await stack.stop();
  });

  const start = async (more: Partial<TriggersOptions> = {}): Promise<Triggers> => {
    triggers = await startTriggers({
      file: stack.file,
      lambda,
      stack,
      logger: silentLogger,
      streamPollMs: 25,
      ...more,
    });
    return triggers;
  };
  const put = (id: string, wanted: string): Promise<unknown> =>
    store.send(
      new PutItemCommand({ TableName: stack.connectionsTable, Item: { id: { S: id }, wanted: { S: wanted } } }),
    );
  const putTogether = (ids: readonly string[]): Promise<unknown> =>
    store.send(
      new BatchWriteItemCommand({
        RequestItems: {
          [stack.connectionsTable]: ids.map((id) => ({
            PutRequest: { Item: { id: { S: id }, wanted: { S: "yes" } } },
          })),
        },
      }),
    );

  /** Takes messages until there are `count`, removing them from the queue. */
  const receive = async (queueUrl: string, count: number): Promise<unknown[]> => {
    const bodies: unknown[] = [];
    await until(`${count} messages in ${queueUrl}`, async () => {
      const { Messages = [] } = await queue.send(
        new ReceiveMessageCommand({ QueueUrl: queueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1 }),
      );
      for (const { Body, ReceiptHandle } of Messages) {
        bodies.push(JSON.parse(Body ?? "null"));
        await queue.send(new DeleteMessageCommand({ QueueUrl: queueUrl, ReceiptHandle }));
      }
      return bodies.length >= count;
    });
    return bodies;
  };
  const idsOf = (messages: unknown[]): string[] => (messages as Sent[]).map((one) => one.id).sort();

  it("invokes the function with the records that the filter lets through, and no others", async () => {
    const { stats } = await start();
    await put("a", "yes");
    await put("b", "no");
    await put("c", "yes");
    assert.deepEqual(idsOf(await receive(stack.hintQueueUrl, 2)), ["a", "c"]);
    const stream = stats.streams["stream-to-queue"];
    await until("all records to be read", () => stream?.recordsRead === 3 && stream.recordsDone === 2);
    assert.equal(stream?.recordsMatched, 2);
  });

  it("does not replay what was written before it started, and misses nothing after that", async () => {
    await put("early", "yes");
    await start();
    await put("late", "yes");
    assert.deepEqual(idsOf(await receive(stack.hintQueueUrl, 1)), ["late"]);
  });

  it("hands over batches of the configured size", async () => {
    await start({ streamPollMs: 300 });
    const ids = Array.from({ length: 25 }, (_, i) => `batch-${String(i).padStart(2, "0")}`);
    await putTogether(ids);
    const sent = (await receive(stack.hintQueueUrl, 25)) as Sent[];
    assert.deepEqual(idsOf(sent), ids);
    assert.ok(
      sent.every((one) => one.of <= 10),
      "batchSize is 10",
    );
    assert.ok(
      sent.some((one) => one.of > 1),
      "records that come together travel together",
    );
  });

  it("goes on past a poison record and reports it to the on-failure queue", async () => {
    const { stats } = await start({ streamPollMs: 300 });
    const ids = ["p1", "p2", "poison", "p3", "p4"];
    await putTogether(ids);
    assert.deepEqual(idsOf(await receive(stack.hintQueueUrl, 4)), ["p1", "p2", "p3", "p4"]);
    const [failure] = (await receive(stack.dlqUrl, 1)) as {
      requestContext: { condition: string; functionArn: string };
      DDBStreamBatchInfo: {
        startSequenceNumber: string;
        endSequenceNumber: string;
        batchSize: number;
        streamArn: string;
      };
    }[];
    assert.equal(failure?.requestContext.condition, "RetryAttemptsExhausted");
    assert.equal(failure.requestContext.functionArn, lambda.arnOf("stream-to-queue"));
    assert.equal(failure.DDBStreamBatchInfo.batchSize, 1);
    assert.equal(failure.DDBStreamBatchInfo.startSequenceNumber, failure.DDBStreamBatchInfo.endSequenceNumber);
    assert.equal(failure.DDBStreamBatchInfo.streamArn, stack.references["ConnectionsTable.StreamArn"]);
    const stream = stats.streams["stream-to-queue"];
    assert.deepEqual([stream?.recordsDone, stream?.recordsGivenUp], [4, 1]);
  });

  it("can play a broken stream", async () => {
    const { stats } = await start({ withoutStream: true });
    const invocations = lambda.stats["stream-to-queue"]?.invocations;
    await put("unseen", "yes");
    assert.deepEqual(stats.streams, {});
    await triggers?.stop();
    await start();
    await put("seen", "yes");
    assert.deepEqual(idsOf(await receive(stack.hintQueueUrl, 1)), ["seen"]);
    assert.equal(lambda.stats["stream-to-queue"]?.invocations, (invocations ?? 0) + 1);
  });

  it("fires a schedule at once", async () => {
    const invocations = (): number => lambda.stats["tick"]?.invocations ?? 0;
    const before = invocations();
    const { stats } = await start();
    await until("the schedule to fire", () => invocations() === before + 1);
    assert.deepEqual(stats.schedules["tick"], { runs: 1, delayed: 0 });
  });

  it("hands events on the bus to the functions whose rule matches, unless events get lost", async () => {
    const event = { source: "sample", "detail-type": "any", detail: { clusterArn: stack.clusterArn } };
    const invocations = (): number => lambda.stats["probe"]?.invocations ?? 0;
    const before = invocations();
    const { putEvent, stats } = await start();
    assert.deepEqual(putEvent({ ...event, source: "other" }), []);
    assert.deepEqual(putEvent(event), ["probe"]);
    await until("the function to be invoked", () => invocations() === before + 1);
    assert.deepEqual(stats.events, { events: 2, matched: 1 });
    await triggers?.stop();
    assert.deepEqual((await start({ withoutTaskEvents: true })).putEvent(event), []);
    assert.equal(invocations(), before + 1);
  });
});
