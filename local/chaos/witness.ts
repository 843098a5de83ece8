import type { Evidence } from "../run/collect.ts";
import type { ConnectionRecord, SocketRecord } from "../upstream/record.ts";
import type { LinkRecord } from "./proxy/link.ts";

/** What all parties wrote down, and the proxy between them: sockets bear the workers' ports, frames the time of their sending. */
export interface ChaosEvidence extends Evidence {
  /** By the number of the upstream's socket. */
  readonly linkOf: ReadonlyMap<number, LinkRecord>;
}

/** The upstream accepts after the proxy has connected, but either may note it first. */
const ORDER_SLACK_MS = 250;

/**
 * Brings what the upstream saw of each socket together with what the workers did to it. A port may be used again, so the
 * latest connection before the socket's opening counts.
 *
 * @throws for a socket that did not come through the proxy: nobody could judge it
 */
export function withLinks(evidence: Evidence, links: readonly LinkRecord[]): ChaosEvidence {
  const byPort = Map.groupBy(links, ({ serverPort }) => serverPort);
  const linkOf = new Map<number, LinkRecord>();
  const seenByWorker = (socket: SocketRecord): SocketRecord => {
    const link = byPort
      .get(socket.remotePort)
      ?.findLast(({ openedAtMs }) => openedAtMs <= socket.openedAtMs + ORDER_SLACK_MS);
    if (link === undefined)
      throw new Error(`${socket.connectionId}: socket ${socket.socket} did not come through the proxy`);
    linkOf.set(socket.socket, link);
    return { ...socket, remotePort: link.clientPort, frames: [...link.frames] };
  };
  const records = new Map(
    [...evidence.records].map(([connectionId, record]): [string, ConnectionRecord] => [
      connectionId,
      { ...record, sockets: record.sockets.map(seenByWorker) },
    ]),
  );
  const sockets = new Map([...records].map(([connectionId, record]) => [connectionId, record.sockets]));
  return { ...evidence, records, sockets, linkOf };
}
