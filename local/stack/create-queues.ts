import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  SetQueueAttributesCommand,
  type SQSClient,
} from "@aws-sdk/client-sqs";
import type { QueueDefinition } from "../serverless/queues.ts";

export interface CreatedQueue {
  readonly url: string;
  readonly arn: string;
}

/**
 * Creates all queues, then their redrive policies, since a queue may come before its dead-letter queue.
 * @param loopbackOrigin where the server really is, when it is on this machine: local servers put host names into queue
 * URLs that no resolver knows, and the SDK follows the URL's host.
 */
export async function ensureQueues(
  client: SQSClient,
  definitions: readonly QueueDefinition[],
  loopbackOrigin: string | undefined,
): Promise<ReadonlyMap<string, CreatedQueue>> {
  const created = new Map<string, CreatedQueue>();
  for (const { logicalId, queueName, attributes } of definitions) {
    const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName: queueName, Attributes: attributes }));
    if (QueueUrl === undefined) throw new Error(`SQS gave no URL for the queue ${queueName}`);
    const url = loopbackOrigin === undefined ? QueueUrl : loopbackOrigin + new URL(QueueUrl).pathname;
    const answer = await client.send(new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ["QueueArn"] }));
    const arn = answer.Attributes?.QueueArn;
    if (arn === undefined) throw new Error(`SQS gave no ARN for the queue ${queueName}`);
    created.set(logicalId, { url, arn });
  }
  for (const { logicalId, redrive } of definitions) {
    const queue = created.get(logicalId);
    if (redrive === undefined || queue === undefined) continue;
    const target = created.get(redrive.targetLogicalId);
    if (target === undefined) {
      throw new Error(`serverless.yml: resources.${logicalId}: no queue is called ${redrive.targetLogicalId}`);
    }
    const policy = JSON.stringify({ deadLetterTargetArn: target.arn, maxReceiveCount: redrive.maxReceiveCount });
    await client.send(new SetQueueAttributesCommand({ QueueUrl: queue.url, Attributes: { RedrivePolicy: policy } }));
  }
  return created;
}
