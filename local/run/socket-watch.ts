import type { Upstream } from "../upstream/client.ts";

/** Follows the upstream's sockets while they open and close. Times are host clock milliseconds. */
export class SocketWatch {
  readonly firstOpenAtMs = new Map<string, number>();
  readonly lastCloseAtMs = new Map<string, number>();
  readonly #open = new Map<string, number>();

  constructor(upstream: Pick<Upstream, "onEvent">) {
    upstream.onEvent(({ kind, connectionId, atMs }) => {
      if (kind === "opened") {
        if (!this.firstOpenAtMs.has(connectionId)) this.firstOpenAtMs.set(connectionId, atMs);
      } else this.lastCloseAtMs.set(connectionId, atMs);
      this.#open.set(connectionId, this.openSockets(connectionId) + (kind === "opened" ? 1 : -1));
    });
  }

  openSockets(connectionId: string): number {
    return this.#open.get(connectionId) ?? 0;
  }
}
