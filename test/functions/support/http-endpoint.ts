import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface HttpEndpoint {
  readonly url: string;
  /** Bodies of the requests so far, parsed; undefined for one without a body. */
  readonly received: readonly unknown[];
  close(): Promise<void>;
}

/** A server on loopback that answers every request with the same status and JSON. */
export async function httpEndpoint(status: number, answer: unknown): Promise<HttpEndpoint> {
  const received: unknown[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      received.push(text === "" ? undefined : JSON.parse(text));
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    received,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
