import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { CONNECTION } from "../connection/attributes.ts";
import { leaseOf, type RawItem } from "../connection/item.ts";
import { lost, type Lost } from "./outcome.ts";

/** Who writes: every holder write is conditional on both, and none of them creates an item. */
export interface Holder {
  readonly connectionId: string;
  readonly owner: string;
  readonly epoch: bigint;
}

/** How far the stored stream reaches. */
export interface Checkpoint {
  readonly lastSeq: bigint;
  /** The upstream's own position at `lastSeq`, where the feed has one. */
  readonly lastCursor?: string;
}

/** False for a missing item too: a comparison with a missing attribute is false. */
export const HOLDER_CONDITION = "lease_owner = :me AND lease_epoch = :mine";

export function holderKey(holder: Holder): Record<string, AttributeValue> {
  return { [CONNECTION.id]: { S: holder.connectionId } };
}

export function holderValues(holder: Holder): Record<string, AttributeValue> {
  return { ":me": { S: holder.owner }, ":mine": { N: holder.epoch.toString() } };
}

/** The checkpoint's share of an update, empty when there is nothing to write. */
export function checkpointUpdate(checkpoint: Checkpoint | undefined): {
  assignments: string[];
  values: Record<string, AttributeValue>;
} {
  if (checkpoint === undefined) return { assignments: [], values: {} };
  const assignments = ["last_seq = :lastSeq"];
  const values: Record<string, AttributeValue> = { ":lastSeq": { N: checkpoint.lastSeq.toString() } };
  if (checkpoint.lastCursor !== undefined) {
    assignments.push("last_cursor = :lastCursor");
    values[":lastCursor"] = { S: checkpoint.lastCursor };
  }
  return { assignments, values };
}

/** Why a holder's condition failed. */
export function holderRefused(item: RawItem | undefined): Lost {
  if (item === undefined) return lost("gone");
  return lost(leaseOf(item).owner === undefined ? "parked" : "owned", item);
}

/**
 * True when the item is free under our own epoch with exactly the expiry we asked for: an earlier attempt of this very
 * write, or a release of this task by somebody who knew it dead. Either way nobody acts under this epoch any more.
 */
export function freedAs(item: RawItem | undefined, holder: Holder, expiresAtMs: number): boolean {
  if (item === undefined) return false;
  const lease = leaseOf(item);
  return lease.owner === undefined && lease.epoch === holder.epoch && lease.expiresAtMs === expiresAtMs;
}
