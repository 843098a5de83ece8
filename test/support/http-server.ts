import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { text } from "node:stream/consumers";

export interface TestServer {
  readonly url: string;
  readonly requests: readonly { readonly headers: IncomingMessage["headers"]; readonly body: string }[];
  /** Connections that were ever accepted. */
  readonly connections: readonly Socket[];
  readonly stop: () => Promise<void>;
}

/** A real HTTP server on a free loopback port; `answer` is called with each request once its body has been read. */
export async function startServer(
  answer: (response: ServerResponse, body: string, n: number) => void,
): Promise<TestServer> {
  const requests: { headers: IncomingMessage["headers"]; body: string }[] = [];
  const connections: Socket[] = [];
  const listener: RequestListener = (request, response) => {
    text(request).then(
      (body) => {
        requests.push({ headers: request.headers, body });
        answer(response, body, requests.length);
      },
      () => undefined, // the client gave up while sending
    );
  };
  const server = createServer(listener).on("connection", (socket: Socket) => connections.push(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    connections,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
