import type { RawItem } from "../connection/item.ts";

/** The write is applied (perhaps by an earlier attempt of ours whose answer was lost): the lease is ours as we asked. */
export interface Held<T> {
  readonly kind: "held";
  readonly value: T;
}

/** Why a condition failed, read from the item that DynamoDB returned with the refusal. */
export type LostReason =
  /** No such item. */
  | "gone"
  /** `desired_state` is not STARTED. */
  | "stopped"
  /** `desired_state` is STARTED, where only a stopped connection may be deleted. */
  | "started"
  /** No owner, but not before the item's expiry: parked, or freed by somebody a moment ago. */
  | "parked"
  /** Another owner, or another epoch. */
  | "owned"
  /** Our own name, but not this request: an older life of ours. It can be taken over only by a successful renew. */
  | "own-older-life"
  /** An attribute of the lease has a type that no lease operation can work with; the audit mends or reports it. */
  | "malformed";

/** The condition failed: whoever holds must stop at once. */
export interface Lost {
  readonly kind: "lost";
  readonly reason: LostReason;
  /** The item as it is; absent when gone. */
  readonly item: RawItem | undefined;
}

export type UnknownReason =
  | "throttled"
  | "timeout"
  | "server"
  | "credentials"
  | "network"
  /** The lease of another ends within twice the skew: the hint stays and is tried again. */
  | "expiring"
  /** Not sent: this machine cannot tell the time well enough to count a lease by it. */
  | "clock"
  | "other";

/** Nobody can say whether the write is applied, or it may be in a moment. Never a loss: try on until the local deadline. */
export interface Unknown {
  readonly kind: "unknown";
  readonly reason: UnknownReason;
  readonly error: unknown;
}

/** Three outcomes, never two: a throttle is not a loss, and a lost answer is not a failure. */
export type Outcome<T> = Held<T> | Lost | Unknown;

export const held = <T>(value: T): Held<T> => ({ kind: "held", value });
export const lost = (reason: LostReason, item?: RawItem): Lost => ({ kind: "lost", reason, item });
export const unknown = (reason: UnknownReason, error: unknown): Unknown => ({ kind: "unknown", reason, error });
