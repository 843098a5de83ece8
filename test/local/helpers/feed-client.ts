import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";

const LIMIT_MS = 20_000;

/** Waits until the condition holds, looking again every few milliseconds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + LIMIT_MS;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`not within ${LIMIT_MS} ms: ${what}`);
    await delay(5);
  }
}

/** A reader of one feed that keeps all it receives, and when (host clock). */
export class FeedClient {
  readonly ws: WebSocket;
  readonly received: string[] = [];
  readonly receivedAtMs: number[] = [];
  pings = 0;
  closeCode: number | undefined;
  /** `open`, or the HTTP status of a refused upgrade. */
  readonly outcome: Promise<"open" | number>;

  constructor(url: string) {
    this.ws = new WebSocket(url, { perMessageDeflate: false });
    this.ws.on("message", (data: Buffer) => {
      this.received.push(data.toString());
      this.receivedAtMs.push(Number(process.hrtime.bigint()) / 1e6);
    });
    this.ws.on("ping", () => (this.pings += 1));
    this.ws.on("close", (code) => (this.closeCode = code));
    this.outcome = new Promise((resolve, reject) => {
      this.ws.once("open", () => resolve("open"));
      this.ws.once("unexpected-response", (request, response) => {
        request.destroy();
        resolve(response.statusCode ?? 0);
      });
      this.ws.on("error", reject);
    });
  }

  async receive(count: number): Promise<void> {
    await until(`${count} messages, got ${this.received.length}`, () => this.received.length >= count);
  }

  async close(): Promise<void> {
    this.ws.close(1000);
    await until("the close handshake", () => this.closeCode !== undefined);
  }
}
