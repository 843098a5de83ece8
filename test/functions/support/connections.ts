import { GetItemCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import type { RawItem } from "../../../shared/connection/item.ts";
import type { LeaseTable } from "../../../shared/lease/index.ts";

/** A sound STARTED connection, free since ever; `undefined` takes an attribute away. */
export function connection(id: string, changes: Record<string, RawItem[string] | undefined> = {}): RawItem {
  const item: Record<string, RawItem[string] | undefined> = {
    connection_id: { S: id },
    desired_state: { S: "STARTED" },
    ws_url: { S: "wss://feed.test/stream" },
    lease_expires_at_ms: { N: "0" },
    ...changes,
  };
  return Object.fromEntries(
    Object.entries(item).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

export function expiry(ms: number): RawItem {
  return { lease_expires_at_ms: { N: String(ms) } };
}

export function ownedBy(owner: string, expiresAtMs: number): RawItem {
  return { lease_owner: { S: owner }, lease_epoch: { N: "7" }, ...expiry(expiresAtMs) };
}

export const STOPPED: RawItem = { desired_state: { S: "STOPPED" } };

/** Stores items as they stand, whatever the protocol would say. */
export async function store(table: LeaseTable, ...items: RawItem[]): Promise<void> {
  for (const Item of items) await table.client.send(new PutItemCommand({ TableName: table.tableName, Item }));
}

export async function stored(table: LeaseTable, id: string): Promise<RawItem | undefined> {
  const { Item } = await table.client.send(
    new GetItemCommand({ TableName: table.tableName, Key: { connection_id: { S: id } }, ConsistentRead: true }),
  );
  return Item;
}
