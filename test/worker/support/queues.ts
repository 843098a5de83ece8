import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { basicEnv } from "../../../local/stack/child-env.ts";
import { startSqs } from "../../../local/stack/sqs.ts";
import { sqsClient } from "../../../shared/aws/clients.ts";
import { encodeHint } from "../../../shared/hints/hint.ts";
import { silentLogger } from "../../../shared/logger.ts";
import { sqsHintQueue, type HintQueue } from "../../../worker/intake/hint-queue.ts";

const REGION = "us-east-1";

/** A hint queue with its dead-letter queue, in the embedded server. */
export interface Queues {
  readonly url: string;
  readonly dlqUrl: string;
  /** As the worker sees it, over clients built as the worker builds them. */
  worker(settings?: { hintVisibilityMs?: number; longPollMs?: number }): HintQueue;
  hint(...connectionIds: string[]): Promise<void>;
  send(body: string): Promise<void>;
  /** Receives what is visible in a queue right now, without deleting it; it is hidden for `hiddenS` then. */
  take(url: string, hiddenS?: number): Promise<string[]>;
  /** Messages that are neither deleted nor dead: visible and in flight. */
  left(): Promise<{ readonly visible: number; readonly inFlight: number }>;
}

export interface EmbeddedQueues {
  readonly endpoint: string;
  create(): Promise<Queues>;
  stop(): Promise<void>;
}

/** Starts the embedded server for one test file and points this process's SDK at it. */
export async function startQueues(): Promise<EmbeddedQueues> {
  const env = { PATH: process.env["PATH"] };
  const server = await startSqs({ env, childEnv: basicEnv(process.env), logger: silentLogger, region: REGION });
  process.env["AWS_ENDPOINT_URL_SQS"] = server.endpoint;
  process.env["AWS_REGION"] = REGION;
  process.env["AWS_ACCESS_KEY_ID"] = "test";
  process.env["AWS_SECRET_ACCESS_KEY"] = "test";
  const client = new SQSClient({ endpoint: server.endpoint, useQueueUrlAsEndpoint: false });
  const workerClients: SQSClient[] = [];
  const workerClient = (): SQSClient => {
    const one = sqsClient({ attempts: 3, attemptTimeoutMs: 30_000, maxSockets: 16 });
    workerClients.push(one);
    return one;
  };
  return {
    endpoint: server.endpoint,
    create: async () => {
      const [url, dlqUrl] = [await createQueue(client, "hints"), await createQueue(client, "dead")];
      return queuesOf(client, url, dlqUrl, workerClient);
    },
    stop: async () => {
      for (const one of [client, ...workerClients]) one.destroy();
      await server.stop();
    },
  };
}

async function createQueue(client: SQSClient, name: string): Promise<string> {
  const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName: `${name}-${randomUUID()}` }));
  assert.ok(QueueUrl !== undefined);
  return QueueUrl;
}

function queuesOf(client: SQSClient, url: string, dlqUrl: string, workerClient: () => SQSClient): Queues {
  const send = async (body: string): Promise<void> => {
    await client.send(new SendMessageCommand({ QueueUrl: url, MessageBody: body }));
  };
  return {
    url,
    dlqUrl,
    worker: ({ hintVisibilityMs = 60_000, longPollMs = 20_000 } = {}) =>
      sqsHintQueue(workerClient(), workerClient(), { hintQueueUrl: url, dlqUrl, hintVisibilityMs, longPollMs }),
    hint: async (...connectionIds) => {
      for (const connectionId of connectionIds) {
        await send(encodeHint({ connectionId, reason: "orphaned", hintedAtMs: Date.now() }));
      }
    },
    send,
    take: async (from, hiddenS = 0) => {
      const bodies: string[] = [];
      for (;;) {
        const { Messages = [] } = await client.send(
          new ReceiveMessageCommand({
            QueueUrl: from,
            MaxNumberOfMessages: 10,
            WaitTimeSeconds: 0,
            VisibilityTimeout: hiddenS,
          }),
        );
        bodies.push(...Messages.map(({ Body }) => Body ?? ""));
        if (Messages.length === 0 || hiddenS === 0) return bodies;
      }
    },
    left: async () => {
      const { Attributes } = await client.send(
        new GetQueueAttributesCommand({
          QueueUrl: url,
          AttributeNames: ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
        }),
      );
      return {
        visible: Number(Attributes?.ApproximateNumberOfMessages),
        inFlight: Number(Attributes?.ApproximateNumberOfMessagesNotVisible),
      };
    },
  };
}
