import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface HealthReport {
  readonly healthy: boolean;
  readonly [detail: string]: unknown;
}

/** `GET /health` on loopback: 200 while healthy, else 503; the body says why. The container's health check asks it. */
export class HealthServer {
  readonly #server: Server;

  constructor(report: () => HealthReport) {
    this.#server = createServer((request, response) => {
      if (request.method !== "GET" || request.url !== "/health") {
        response.writeHead(404).end();
        return;
      }
      const body = report();
      response.writeHead(body.healthy ? 200 : 503, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    });
    // A health check is one short request; idle connections must not hold up the end of the process.
    this.#server.keepAliveTimeout = 1000;
  }

  /** @returns the port. */
  async listen(port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, "127.0.0.1", resolve);
    });
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
