import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/** How an answer is lost although the request was served: the connection is reset, a 500 comes instead, or nothing comes. */
export type Loss = "reset" | "error-500" | "silence";

export interface LossyProxy {
  readonly endpoint: string;
  /** Operations (such as `UpdateItem`) that were served by the target, lost answers included. */
  readonly served: readonly string[];
  /** Loses the answers to the next `count` requests of this operation. */
  lose(operation: string, loss: Loss, count?: number): void;
  stop(): Promise<void>;
}

/**
 * Stands between the SDK and a DynamoDB endpoint. Every request reaches the target and is answered there before anything is
 * lost, so what the client sees is the one failure that matters: applied, and not known to be.
 */
export async function startLossyProxy(target: string): Promise<LossyProxy> {
  const served: string[] = [];
  const losses = new Map<string, Loss[]>();
  const server = createServer((incoming, outgoing) => {
    const operation = String(incoming.headers["x-amz-target"]).replace(/^.*\./, "");
    forward(target, incoming).then(
      (answer) => {
        served.push(operation);
        answerWith(incoming, outgoing, answer, losses.get(operation)?.shift());
      },
      () => incoming.socket.destroy(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    served,
    lose: (operation, loss, count = 1) => losses.set(operation, Array<Loss>(count).fill(loss)),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

async function forward(target: string, incoming: IncomingMessage): Promise<Answer> {
  const body = await buffer(incoming);
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const options = { method: incoming.method ?? "POST", headers: incoming.headers };
  request(new URL(incoming.url ?? "/", target), options, resolve)
    .on("error", reject)
    .end(body);
  const answer = await promise;
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await buffer(answer) };
}

function answerWith(incoming: IncomingMessage, outgoing: ServerResponse, answer: Answer, loss: Loss | undefined): void {
  switch (loss) {
    case undefined:
      outgoing.writeHead(answer.status, answer.headers).end(answer.body);
      return;
    case "reset":
      incoming.socket.resetAndDestroy();
      return;
    case "error-500":
      outgoing
        .writeHead(500, { "content-type": "application/x-amz-json-1.0" })
        .end('{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"Internal server error"}');
      return;
    case "silence":
      return;
  }
}
