import type { RawItem } from "../../../../shared/connection/item.ts";

/** Wall time at which the contract's stories happen. */
export const NOW_MS = 1_700_000_000_123;
export const LEASE_MS = 20_000;
export const SKEW_MS = 1000;

export const ME = "task-me";
export const OTHER = "task-other";

/** Attributes that no lease operation may touch unless its effect says so. */
const USED_BEFORE: RawItem = {
  upstream: { M: { position: { M: { pointer: { S: "/seq" }, kind: { S: "sequence" } } } } },
  last_seq: { N: "41" },
  last_cursor: { S: "cursor-41" },
  last_error: { S: "was refused once" },
  failure_count: { N: "3" },
};

/** STARTED, takeable, never held. */
export function freshItem(connectionId: string, more: RawItem = {}): RawItem {
  return {
    connection_id: { S: connectionId },
    desired_state: { S: "STARTED" },
    ws_url: { S: "wss://feed.test/stream" },
    lease_expires_at_ms: { N: "0" },
    ...more,
  };
}

/** STARTED, takeable, with a history. */
export function freeItem(connectionId: string, more: RawItem = {}): RawItem {
  return { ...freshItem(connectionId), ...USED_BEFORE, lease_epoch: { N: "1699999000" }, ...more };
}

export interface Lease {
  readonly owner?: string;
  readonly epoch?: bigint;
  readonly expiresAtMs?: number;
}

export const EPOCH = 1_699_999_007n;

/** STARTED and held, by default by {@link ME} for the whole lease from {@link NOW_MS}. */
export function heldItem(connectionId: string, lease: Lease = {}, more: RawItem = {}): RawItem {
  return freeItem(connectionId, {
    lease_owner: { S: lease.owner ?? ME },
    lease_epoch: { N: (lease.epoch ?? EPOCH).toString() },
    lease_expires_at_ms: { N: String(lease.expiresAtMs ?? NOW_MS + LEASE_MS) },
    ...more,
  });
}

/** A copy without the named attributes. */
export function without(item: RawItem, ...names: string[]): RawItem {
  return Object.fromEntries(Object.entries(item).filter(([name]) => !names.includes(name)));
}
