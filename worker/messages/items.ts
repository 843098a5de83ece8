import { MESSAGE, partsPartition, type MessageItem, type MessageRow } from "../../shared/messages/row.ts";
import type { Write } from "./entry.ts";
import type { LargePayload } from "./large-payload.ts";

/** The item that a write stands for. It is built anew for every attempt, so that waiting rows exist only once. */
export function itemOf({ entry, part }: Write, ttlSeconds: number): MessageItem {
  const { row, large } = entry;
  if (large === undefined) return wholeItem(row, ttlSeconds);
  return part === 0 ? headItem(row, large, ttlSeconds) : partItem(row, large, part, ttlSeconds);
}

/** The name of a stored or returned item, as `Write.key` has it; undefined when it has no usable key. */
export function keyOf(item: MessageItem | undefined): string | undefined {
  const partition = item?.[MESSAGE.connectionId]?.S;
  const seq = item?.[MESSAGE.seq]?.N;
  return partition === undefined || seq === undefined ? undefined : `${partition}#${seq}`;
}

function wholeItem(row: MessageRow, ttlSeconds: number): MessageItem {
  return {
    ...common(row, ttlSeconds),
    [MESSAGE.payload]: typeof row.payload === "string" ? { S: row.payload } : { B: row.payload },
  };
}

function headItem(row: MessageRow, large: LargePayload, ttlSeconds: number): MessageItem {
  return {
    ...common(row, ttlSeconds),
    [MESSAGE.parts]: { N: String(large.count) },
    [MESSAGE.sha256]: { S: large.sha256() },
  };
}

function partItem(row: MessageRow, large: LargePayload, part: number, ttlSeconds: number): MessageItem {
  return {
    [MESSAGE.connectionId]: { S: partsPartition(row.connectionId, row.seq) },
    [MESSAGE.seq]: { N: String(part) },
    [MESSAGE.payload]: { B: large.bytes(part) },
    [MESSAGE.expiresAt]: expiresAt(row, ttlSeconds),
  };
}

function common(row: MessageRow, ttlSeconds: number): MessageItem {
  const item: MessageItem = {
    [MESSAGE.connectionId]: { S: row.connectionId },
    [MESSAGE.seq]: { N: row.seq.toString() },
    [MESSAGE.opcode]: { S: typeof row.payload === "string" ? "text" : "binary" },
    [MESSAGE.receivedAtMs]: { N: String(row.receivedAtMs) },
    [MESSAGE.epoch]: { N: row.epoch.toString() },
    [MESSAGE.expiresAt]: expiresAt(row, ttlSeconds),
  };
  if (row.cursor !== undefined) item[MESSAGE.cursor] = { S: row.cursor };
  return item;
}

function expiresAt(row: MessageRow, ttlSeconds: number): { N: string } {
  return { N: String(Math.floor(row.receivedAtMs / 1000) + ttlSeconds) };
}
