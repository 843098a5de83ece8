import type { AttributeValue } from "@aws-sdk/client-dynamodb";

/** Attribute names of the `messages` table, key `connection_id` (S) + `seq` (N). */
export const MESSAGE = {
  connectionId: "connection_id",
  seq: "seq",
  payload: "payload",
  opcode: "opcode",
  receivedAtMs: "received_at_ms",
  epoch: "lease_epoch",
  cursor: "cursor",
  expiresAt: "expires_at",
  parts: "parts",
  sha256: "sha256",
} as const;

/** One message as received, before it becomes one or more items. */
export interface MessageRow {
  readonly connectionId: string;
  readonly seq: bigint;
  readonly payload: string | Uint8Array;
  readonly receivedAtMs: number;
  readonly epoch: bigint;
  readonly cursor?: string;
}

/** Room for positions of one epoch of an unpositioned feed: no owner receives 10^12 messages in one holding. */
const SEQS_PER_EPOCH = 1_000_000_000_000n;

/** Beyond this the keys of an epoch's messages would have more than the 38 digits that DynamoDB keeps. */
export const MAX_EPOCH = 10n ** 25n;

/** The n-th message (from 1) of one holding of an unpositioned feed. Two owners never write the same key. */
export function unpositionedSeq(epoch: bigint, n: bigint): bigint {
  return epoch * SEQS_PER_EPOCH + n;
}

/** Partition that holds the parts of one message too large for a single item; parts are numbered from 1. */
export function partsPartition(connectionId: string, seq: bigint): string {
  return `${connectionId}#${seq}`;
}

/**
 * Partition for messages of a positioned feed that carry no usable position (a greeting, a heartbeat, an error notice):
 * they are kept, but they cannot take a place in the sequence.
 */
export function unpositionedPartition(connectionId: string): string {
  return `${connectionId}#unpositioned`;
}

export type MessageItem = Record<string, AttributeValue>;
