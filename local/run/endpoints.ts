import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { MetricsBoard } from "./metrics-board.ts";

export interface EndpointHandlers {
  /** Undefined: there is no such task. */
  readonly taskMetadata: (taskId: string) => object | undefined;
  readonly runningTasks: () => number;
  readonly board: Pick<MetricsBoard, "accept">;
}

/** What the runner serves on loopback in place of ECS and CloudWatch. */
export interface Endpoints {
  readonly metricsUrl: string;
  readonly runningTasksUrl: string;
  /** The value of ECS_CONTAINER_METADATA_URI_V4 for a task. */
  metadataUri(taskId: string): string;
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 1024 * 1024;

export async function startEndpoints(handlers: EndpointHandlers): Promise<Endpoints> {
  const server = createServer((request, response) => {
    respond(request, response, handlers).catch((error: unknown) => {
      answer(response, 400, { error: error instanceof Error ? error.message : String(error) });
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    metricsUrl: `${origin}/metrics`,
    runningTasksUrl: `${origin}/running-tasks`,
    metadataUri: (taskId) => `${origin}/v4/${taskId}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function respond(request: IncomingMessage, response: ServerResponse, handlers: EndpointHandlers): Promise<void> {
  const path = new URL(request.url ?? "/", "http://runner").pathname;
  const task = /^\/v4\/(?<id>[\w-]+)\/task$/u.exec(path)?.groups?.["id"];
  if (request.method === "GET" && task !== undefined) {
    const metadata = handlers.taskMetadata(task);
    if (metadata === undefined) answer(response, 404, { error: `task ${task} does not run` });
    else answer(response, 200, metadata);
  } else if (request.method === "GET" && path === "/running-tasks") {
    answer(response, 200, { runningTasks: handlers.runningTasks() });
  } else if (request.method === "POST" && path === "/metrics") {
    handlers.board.accept(JSON.parse(await bodyOf(request)));
    response.writeHead(204).end();
  } else answer(response, 404, { error: `${request.method ?? ""} ${path}: nothing is here` });
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new Error(`a body may have at most ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
