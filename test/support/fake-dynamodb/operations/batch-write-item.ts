import type { BatchWriteItemCommandInput, BatchWriteItemCommandOutput, WriteRequest } from "@aws-sdk/client-dynamodb";
import { metadata, validationError } from "../errors.ts";
import type { PrimaryKey, Table } from "../table.ts";
import { itemFromSdk, type Item } from "../values.ts";
import { batchCapacity, checkBatch, splitBatch, type Unprocessed } from "./batch.ts";
import { assertParameters, type Store } from "./context.ts";

const MAX_REQUESTS = 25;

interface Write {
  readonly table: Table;
  readonly key: PrimaryKey;
  readonly next: Item | undefined;
  readonly request: WriteRequest;
}

/** One bad entry refuses the whole batch; otherwise each entry is a write of its own. */
export function batchWriteItem(
  store: Store,
  input: BatchWriteItemCommandInput,
  unprocessed: Unprocessed = () => false,
): BatchWriteItemCommandOutput {
  assertParameters("BatchWriteItem", input, ["RequestItems", "ReturnConsumedCapacity"]);
  const tables = Object.entries(input.RequestItems ?? {});
  const writes = tables.flatMap(([name, requests]) =>
    requests.map((request) => parseWrite(store.table(name), request)),
  );
  checkBatch(
    tables.map(([, requests]) => requests.length),
    MAX_REQUESTS,
    writes.map(({ table, key }) => `${table.schema.name}:${key.id}`),
  );
  const { taken, left } = splitBatch(writes, unprocessed);
  const spent = taken.map(({ table, key, next }) => ({ table: table.schema.name, units: table.write(key, next) }));

  const back: Record<string, WriteRequest[]> = {};
  for (const { table, request } of left) (back[table.schema.name] ??= []).push(structuredClone(request));
  const capacity = batchCapacity(input.ReturnConsumedCapacity, spent);
  return {
    UnprocessedItems: back,
    ...(capacity === undefined ? {} : { ConsumedCapacity: capacity }),
    $metadata: metadata(200),
  };
}

function parseWrite(table: Table, request: WriteRequest): Write {
  const { PutRequest: put, DeleteRequest: del } = request;
  if (put !== undefined && del === undefined) {
    const next = itemFromSdk(put.Item ?? {});
    const key = table.keyOfItem(next);
    table.checkStorable(next);
    return { table, key, next, request };
  }
  if (del !== undefined && put === undefined) return { table, key: table.parseKey(del.Key), next: undefined, request };
  throw validationError(
    "Supplied AttributeValue has more than one datatypes set, must contain exactly one of PutRequest and DeleteRequest",
  );
}
