import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  type SQSClient,
} from "@aws-sdk/client-sqs";

/** A hint as the queue hands it out; the handle is good until its visibility timeout. */
export interface ReceivedHint {
  readonly body: string | undefined;
  readonly receiptHandle: string;
}

/** The queue as the intake sees it. */
export interface HintQueue {
  /** Waits up to the long poll for at most `max` (1–10) hints. */
  receive(max: number, signal: AbortSignal): Promise<ReceivedHint[]>;
  remove(hints: readonly ReceivedHint[]): Promise<void>;
  /** Makes them visible to others at once. */
  giveBack(hints: readonly ReceivedHint[]): Promise<void>;
  /** Where bodies go that nobody can read. */
  sendToDlq(body: string): Promise<void>;
}

export interface HintQueueSettings {
  readonly hintQueueUrl: string;
  readonly dlqUrl: string;
  readonly hintVisibilityMs: number;
  readonly longPollMs: number;
}

/** SQS takes at most this many per call. */
export const MAX_BATCH = 10;

/** @param poller a client of its own: a long poll must not hold up a delete. */
export function sqsHintQueue(poller: SQSClient, client: SQSClient, settings: HintQueueSettings): HintQueue {
  const QueueUrl = settings.hintQueueUrl;
  const entries = (hints: readonly ReceivedHint[]) =>
    hints.map((hint, index) => ({ Id: String(index), ReceiptHandle: hint.receiptHandle }));
  return {
    async receive(max, signal) {
      const { Messages } = await poller.send(
        new ReceiveMessageCommand({
          QueueUrl,
          MaxNumberOfMessages: Math.min(max, MAX_BATCH),
          WaitTimeSeconds: settings.longPollMs / 1000,
          VisibilityTimeout: settings.hintVisibilityMs / 1000,
        }),
        { abortSignal: signal },
      );
      return (Messages ?? []).flatMap((message) =>
        message.ReceiptHandle === undefined ? [] : [{ body: message.Body, receiptHandle: message.ReceiptHandle }],
      );
    },
    async remove(hints) {
      if (hints.length > 0) await client.send(new DeleteMessageBatchCommand({ QueueUrl, Entries: entries(hints) }));
    },
    async giveBack(hints) {
      if (hints.length === 0) return;
      await client.send(
        new ChangeMessageVisibilityBatchCommand({
          QueueUrl,
          Entries: entries(hints).map((entry) => ({ ...entry, VisibilityTimeout: 0 })),
        }),
      );
    },
    async sendToDlq(body) {
      await client.send(new SendMessageCommand({ QueueUrl: settings.dlqUrl, MessageBody: body }));
    },
  };
}
