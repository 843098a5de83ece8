/** A process that opens one long poll, says so, says what came, and waits to be killed. */
import { ReceiveMessageCommand, SQSClient } from "@aws-sdk/client-sqs";

const [, , endpoint = "", QueueUrl = ""] = process.argv;
const client = new SQSClient({
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
  maxAttempts: 1,
});
client.middlewareStack.add(
  (next) => (args) => {
    // Sent, and the server has had the time to begin waiting.
    setTimeout(() => process.send?.({ polling: true }), 300);
    return next(args);
  },
  { step: "finalizeRequest", priority: "low" },
);
const { Messages = [] } = await client.send(
  new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 20, MaxNumberOfMessages: 10, VisibilityTimeout: 30 }),
);
process.send?.({ took: Messages.map(({ Body }) => Body) });
setInterval(() => undefined, 60_000);
