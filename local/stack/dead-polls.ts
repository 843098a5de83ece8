import type { buildApp } from "fauxqs";
import type { Socket } from "node:net";
import { z } from "zod";

type SqsApp = ReturnType<typeof buildApp>;

const RECEIVE = "AmazonSQS.ReceiveMessage";
const received = z.object({ Messages: z.array(z.object({ ReceiptHandle: z.string() })).optional() });
const asked = z.object({ QueueUrl: z.string() });

/**
 * Makes the messages of a long poll visible again at once when its client is gone. The embedded queue does not notice that
 * a poller was killed, and hands the next messages to it: they would stay hidden for the whole visibility timeout.
 */
export function giveBackDeadPolls(app: SqsApp): void {
  app.addHook("onSend", async (request, _reply, payload) => {
    if (request.headers["x-amz-target"] !== RECEIVE || !gone(request.raw.socket) || typeof payload !== "string") {
      return payload;
    }
    const { Messages = [] } = received.parse(JSON.parse(payload));
    const { QueueUrl } = asked.parse(request.body);
    for (const { ReceiptHandle } of Messages) {
      await app.inject({
        method: "POST",
        url: "/",
        headers: { "content-type": "application/x-amz-json-1.0", "x-amz-target": "AmazonSQS.ChangeMessageVisibility" },
        payload: { QueueUrl, ReceiptHandle, VisibilityTimeout: 0 },
      });
    }
    return payload;
  });
}

/** The end of the client's side is enough: no client of HTTP half-closes and still waits. */
function gone(socket: Socket): boolean {
  return socket.destroyed || socket.readableEnded || !socket.writable;
}
