import { CreateQueueCommand, DeleteMessageBatchCommand, ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { SqsHintQueue } from "../../../functions/core/hint-queue.ts";
import { basicEnv } from "../../../local/stack/child-env.ts";
import { startSqs } from "../../../local/stack/sqs.ts";
import { parseHint, type Hint } from "../../../shared/hints/hint.ts";
import { silentLogger } from "../../../shared/logger.ts";

const REGION = "us-east-1";

export interface EmbeddedQueue {
  readonly url: string;
  readonly hints: SqsHintQueue;
  /** Receives without deleting, so that the messages stay in flight; gives how many there were. */
  hold(count: number): Promise<number>;
  /** Takes everything out that is visible, and reads it as the worker does. */
  drain(): Promise<Hint[]>;
}

export interface EmbeddedSqs {
  readonly client: SQSClient;
  createQueue(): Promise<EmbeddedQueue>;
  stop(): Promise<void>;
}

/** Starts the embedded queue server for one test file and points this process's SDK at it. */
export async function startEmbeddedSqs(): Promise<EmbeddedSqs> {
  const env = { PATH: process.env["PATH"] };
  const server = await startSqs({ env, childEnv: basicEnv(process.env), logger: silentLogger, region: REGION });
  process.env["AWS_ENDPOINT_URL_SQS"] = server.endpoint;
  process.env["AWS_REGION"] = REGION;
  process.env["AWS_ACCESS_KEY_ID"] = "test";
  process.env["AWS_SECRET_ACCESS_KEY"] = "test";
  const client = new SQSClient({ endpoint: server.endpoint, useQueueUrlAsEndpoint: false });
  return {
    client,
    createQueue: async () => {
      const { QueueUrl } = await client.send(
        new CreateQueueCommand({ QueueName: `hints-${randomUUID()}`, Attributes: { VisibilityTimeout: "120" } }),
      );
      assert.ok(QueueUrl !== undefined);
      return queueOf(client, QueueUrl);
    },
    stop: async () => {
      client.destroy();
      await server.stop();
    },
  };
}

function queueOf(client: SQSClient, url: string): EmbeddedQueue {
  const receive = async (count: number) =>
    (await client.send(new ReceiveMessageCommand({ QueueUrl: url, MaxNumberOfMessages: count, WaitTimeSeconds: 0 })))
      .Messages ?? [];
  return {
    url,
    hints: new SqsHintQueue(client, url),
    hold: async (count) => (await receive(count)).length,
    drain: async () => {
      const hints: Hint[] = [];
      for (let batch = await receive(10); batch.length > 0; batch = await receive(10)) {
        for (const { Body } of batch) {
          const hint = parseHint(Body);
          assert.ok(!("problem" in hint), `a worker could not read ${Body}`);
          hints.push(hint);
        }
        await client.send(
          new DeleteMessageBatchCommand({
            QueueUrl: url,
            Entries: batch.map(({ ReceiptHandle }, i) => ({ Id: String(i), ReceiptHandle })),
          }),
        );
      }
      return hints;
    },
  };
}
