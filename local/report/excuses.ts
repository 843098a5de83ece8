import type { Fault } from "../audit/compare-live.ts";
import type { Holding } from "../audit/holdings.ts";
import type { SocketRecord } from "../upstream/record.ts";
import { measureRecovery, portsOf, type MeasuredFault } from "./recoveries.ts";

export interface Struck extends MeasuredFault {
  readonly thawedAtMs?: number;
}

export interface Traces {
  readonly holdings: ReadonlyMap<string, readonly Holding[]>;
  readonly sockets: ReadonlyMap<string, readonly SocketRecord[]>;
}

/**
 * The faults that excuse what a feed that cannot replay said to the struck task alone. A terminated task is none of them: it is asked to
 * end and reads what is on its way, so all it may miss is what is said while it hands over.
 */
export function excusingFaults(faults: readonly Struck[], { holdings, sockets }: Traces): Fault[] {
  return faults
    .filter(({ kind }) => kind !== "term")
    .map((fault) => ({
      kind: fault.kind,
      atMs: fault.atMs,
      ...(fault.thawedAtMs === undefined ? {} : { untilMs: fault.thawedAtMs }),
      connections: new Set(measureRecovery(fault, holdings, sockets).held),
      remotePorts: portsOf(fault, holdings),
    }));
}
