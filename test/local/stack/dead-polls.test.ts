import { ReceiveMessageCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { startStack, type Stack } from "../../../local/stack/stack.ts";
import { silentLogger } from "../../../shared/logger.ts";

const VISIBILITY_S = 30;

describe("the embedded queue, when a poller is killed", () => {
  let stack: Stack;
  let client: SQSClient;
  before(async () => {
    const projectRoot = path.join(import.meta.dirname, "project");
    stack = await startStack({ projectRoot, env: { PATH: process.env["PATH"] }, logger: silentLogger });
    client = new SQSClient({ endpoint: stack.sqsEndpoint, region: stack.region, credentials: stack.credentials! });
  });
  after(async () => {
    client.destroy();
    await stack.stop();
  });

  /** A process with an open long poll. */
  const poller = async (): Promise<ChildProcess> => {
    const child = fork(path.join(import.meta.dirname, "poller.ts"), [stack.sqsEndpoint, stack.hintQueueUrl]);
    await once(child, "message");
    return child;
  };
  const receive = async () => {
    const { Messages = [] } = await client.send(
      new ReceiveMessageCommand({
        QueueUrl: stack.hintQueueUrl,
        WaitTimeSeconds: 5,
        MaxNumberOfMessages: 10,
        VisibilityTimeout: VISIBILITY_S,
      }),
    );
    return Messages.map(({ Body }) => Body);
  };

  it("gives what the dead poll took to the next one, long before the visibility timeout", async () => {
    const child = await poller();
    child.kill("SIGKILL");
    await once(child, "exit");
    await client.send(new SendMessageCommand({ QueueUrl: stack.hintQueueUrl, MessageBody: "hint" }));
    assert.deepEqual(await receive(), ["hint"]);
  });

  it("leaves what a living poller took with it", async () => {
    const child = await poller();
    const took = once(child, "message");
    await client.send(new SendMessageCommand({ QueueUrl: stack.hintQueueUrl, MessageBody: "another" }));
    assert.deepEqual(await took, [{ took: ["another"] }, undefined]);
    const empty = await client.send(
      new ReceiveMessageCommand({ QueueUrl: stack.hintQueueUrl, WaitTimeSeconds: 0, MaxNumberOfMessages: 10 }),
    );
    assert.equal(empty.Messages, undefined);
    child.kill("SIGKILL");
    await once(child, "exit");
  });
});
