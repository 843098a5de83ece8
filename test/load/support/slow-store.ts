import { createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";

export interface SlowStore {
  readonly endpoint: string;
  /** How long each request of these operations waits before it is served; 0 for the others. */
  delayMs(operation: string, ms: number): void;
  stop(): Promise<void>;
}

/** Stands between workers and the embedded DynamoDB, and takes its time. */
export async function startSlowStore(target: string): Promise<SlowStore> {
  const delays = new Map<string, number>();
  const server = createServer((incoming, outgoing) => {
    const operation = String(incoming.headers["x-amz-target"]).replace(/^.*\./, "");
    const serve = async (): Promise<void> => {
      const body = await buffer(incoming);
      await delay(delays.get(operation) ?? 0);
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
      const options = { method: incoming.method ?? "POST", headers: incoming.headers };
      request(new URL(incoming.url ?? "/", target), options, resolve)
        .on("error", reject)
        .end(body);
      const answer = await promise;
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers).end(await buffer(answer));
    };
    serve().catch(() => incoming.socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    delayMs: (operation, ms) => void delays.set(operation, ms),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
