import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";

/** A live upstream that says a line on every connection twice a second, and knows who listens. */
export interface Feed {
  urlOf(connectionId: string): string;
  /** Open sockets for a connection. */
  openFor(connectionId: string): number;
  readonly stop: () => Promise<void>;
}

export async function startFeed(): Promise<Feed> {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: false });
  await once(server, "listening");
  const open = new Map<string, number>();
  const count = (id: string, change: number): void => {
    open.set(id, (open.get(id) ?? 0) + change);
  };
  server.on("connection", (socket, request) => {
    const id = request.url?.slice(1) ?? "";
    count(id, 1);
    const timer = setInterval(() => socket.send(`a line for ${id}`), 500);
    socket.on("error", () => socket.terminate());
    socket.on("close", () => {
      clearInterval(timer);
      count(id, -1);
    });
  });
  const { port } = server.address() as AddressInfo;
  return {
    urlOf: (id) => `ws://127.0.0.1:${port}/${id}`,
    openFor: (id) => open.get(id) ?? 0,
    stop: async () => {
      for (const socket of server.clients) socket.terminate();
      server.close();
      await once(server, "close");
    },
  };
}
