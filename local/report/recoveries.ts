import type { Holding } from "../audit/holdings.ts";
import type { SocketRecord } from "../upstream/record.ts";

/** A fault as far as its consequences are measured. Times are host clock milliseconds. */
export interface MeasuredFault {
  readonly kind: string;
  readonly task: string;
  readonly atMs: number;
}

/** What one fault did to the connections that its task held. */
export interface FaultRecovery {
  readonly fault: MeasuredFault;
  /** Connections that the task held at that moment. */
  readonly held: readonly string[];
  /** From the fault to the moment in which the upstream saw a socket of the next holding open. */
  readonly recoveryMs: readonly number[];
  readonly neverRecovered: readonly string[];
}

/**
 * Measures every connection that the struck task held at the fault's moment. One that no later holding ever opened is
 * told by name: it must not vanish from the figures.
 *
 * @param sockets the upstream's records of all sockets
 */
export function measureRecovery(
  fault: MeasuredFault,
  holdings: ReadonlyMap<string, readonly Holding[]>,
  sockets: ReadonlyMap<string, readonly SocketRecord[]>,
): FaultRecovery {
  const held: string[] = [];
  const recoveryMs: number[] = [];
  const neverRecovered: string[] = [];
  for (const [connectionId, lives] of holdings) {
    const struck = lives.find(
      ({ task, acting }) =>
        task === fault.task && acting.some(({ fromMs, toMs }) => fromMs <= fault.atMs && fault.atMs <= toMs),
    );
    if (struck === undefined) continue;
    held.push(connectionId);
    const later = lives.filter(({ epoch }) => epoch > struck.epoch);
    const openedAtMs = firstOpen(later, sockets.get(connectionId) ?? [], fault.atMs);
    if (openedAtMs === undefined) neverRecovered.push(connectionId);
    else recoveryMs.push(openedAtMs - fault.atMs);
  }
  return { fault, held, recoveryMs, neverRecovered };
}

/** Reports of one socket by its two ends lie no further apart than this; a port is used again some day. */
const SAME_SOCKET_MS = 5_000;

function firstOpen(
  holdings: readonly Holding[],
  sockets: readonly SocketRecord[],
  afterMs: number,
): number | undefined {
  const opened = sockets
    .filter(({ openedAtMs, remotePort }) =>
      holdings.some(({ opens }) =>
        opens.some((open) => open.localPort === remotePort && Math.abs(open.atMs - openedAtMs) < SAME_SOCKET_MS),
      ),
    )
    .map(({ openedAtMs }) => openedAtMs)
    .filter((openedAtMs) => openedAtMs >= afterMs);
  return opened.length === 0 ? undefined : Math.min(...opened);
}

/** Local ports of the sockets that the task had opened by then, as the upstream knows them. */
export function portsOf(fault: MeasuredFault, holdings: ReadonlyMap<string, readonly Holding[]>): ReadonlySet<number> {
  const ports = new Set<number>();
  for (const lives of holdings.values()) {
    for (const { task, opens } of lives) {
      if (task === fault.task) for (const { localPort } of opens) ports.add(localPort);
    }
  }
  return ports;
}
