import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import type { DynamoDBBatchResponse, DynamoDBStreamEvent } from "aws-lambda";

const sqs = new SQSClient({ useQueueUrlAsEndpoint: false });
const queueUrl = process.env["HINT_QUEUE_URL"];

/** Sends one message for each record: its id and how many records came with it. An id that begins with `poison` fails. */
export async function handler(event: DynamoDBStreamEvent): Promise<DynamoDBBatchResponse> {
  for (const record of event.Records) {
    const id = record.dynamodb?.NewImage?.["id"]?.S ?? "";
    if (id.startsWith("poison")) {
      return { batchItemFailures: [{ itemIdentifier: record.dynamodb?.SequenceNumber ?? "" }] };
    }
    await sqs.send(
      new SendMessageCommand({ QueueUrl: queueUrl, MessageBody: JSON.stringify({ id, of: event.Records.length }) }),
    );
  }
  return { batchItemFailures: [] };
}
