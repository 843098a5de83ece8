import { GetQueueAttributesCommand, SendMessageBatchCommand, type SQSClient } from "@aws-sdk/client-sqs";
import { sendOptions, type CallOptions } from "../../shared/lease/context.ts";

/** Entries that SendMessageBatch takes (SQS API reference). */
export const MAX_BATCH_ENTRIES = 10;

/** The hint queue as the control plane sees it. */
export interface HintQueue {
  /**
   * Hints that wait, and hints that a worker just received. The queue knows it only approximately.
   * @throws what the SDK throws.
   */
  depth(options?: CallOptions): Promise<number>;
  /**
   * Sends up to {@link MAX_BATCH_ENTRIES} bodies in one call.
   * @returns the indexes of the bodies that the queue did not take.
   * @throws what the SDK throws when the call failed as a whole.
   */
  sendBatch(bodies: readonly string[], options?: CallOptions): Promise<readonly number[]>;
}

export class SqsHintQueue implements HintQueue {
  readonly #client: SQSClient;
  readonly #queueUrl: string;

  constructor(client: SQSClient, queueUrl: string) {
    this.#client = client;
    this.#queueUrl = queueUrl;
  }

  async depth(options?: CallOptions): Promise<number> {
    const { Attributes } = await this.#client.send(
      new GetQueueAttributesCommand({
        QueueUrl: this.#queueUrl,
        AttributeNames: ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
      }),
      sendOptions(options),
    );
    const visible = count(Attributes?.ApproximateNumberOfMessages, "ApproximateNumberOfMessages");
    return visible + count(Attributes?.ApproximateNumberOfMessagesNotVisible, "ApproximateNumberOfMessagesNotVisible");
  }

  async sendBatch(bodies: readonly string[], options?: CallOptions): Promise<readonly number[]> {
    const { Successful } = await this.#client.send(
      new SendMessageBatchCommand({
        QueueUrl: this.#queueUrl,
        Entries: bodies.map((MessageBody, i) => ({ Id: String(i), MessageBody })),
      }),
      sendOptions(options),
    );
    // What is not said to be taken counts as refused: a hint too many is harmless, a hint too few is not.
    const taken = new Set(Successful?.map((entry) => entry.Id));
    return bodies.flatMap((_, i) => (taken.has(String(i)) ? [] : [i]));
  }
}

function count(text: string | undefined, attribute: string): number {
  const value = Number(text ?? NaN);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${attribute}: must be a count, got ${String(text)}`);
  return value;
}
