import type {
  AttributeValue,
  BatchGetItemCommandInput,
  BatchGetItemCommandOutput,
  KeysAndAttributes,
} from "@aws-sdk/client-dynamodb";
import { readUnits, tableUnits } from "../capacity.ts";
import { metadata } from "../errors.ts";
import { Placeholders } from "../expression/placeholders.ts";
import { parseProjection, project } from "../expression/projection.ts";
import { itemBytes, itemToSdk } from "../values.ts";
import type { PrimaryKey, Table } from "../table.ts";
import type { Path } from "../expression/paths.ts";
import { batchCapacity, checkBatch, splitBatch, type Unprocessed } from "./batch.ts";
import { assertParameters, type Store } from "./context.ts";

const MAX_KEYS = 100;
const PARAMETERS = ["Keys", "ConsistentRead", "ProjectionExpression", "ExpressionAttributeNames"];

interface Read {
  readonly name: string;
  readonly table: Table;
  readonly key: PrimaryKey;
  readonly request: KeysAndAttributes;
  readonly paths: readonly Path[] | undefined;
}

/** Missing items are left out. Answers come in the order of the request, which DynamoDB does not promise. */
export function batchGetItem(
  store: Store,
  input: BatchGetItemCommandInput,
  unprocessed: Unprocessed = () => false,
): BatchGetItemCommandOutput {
  assertParameters("BatchGetItem", input, ["RequestItems", "ReturnConsumedCapacity"]);
  const tables = Object.entries(input.RequestItems ?? {});
  const reads = tables.flatMap(([name, request]) => parseReads(store.table(name), request));
  checkBatch(
    tables.map(([, request]) => request.Keys?.length ?? 0),
    MAX_KEYS,
    reads.map(({ name, key }) => `${name}:${key.id}`),
  );
  const { taken, left } = splitBatch(reads, unprocessed);
  const responses: Record<string, Record<string, AttributeValue>[]> = Object.fromEntries(
    tables.map(([name]) => [name, []]),
  );
  const spent = taken.map(({ name, table, key, request, paths }) => {
    const item = table.get(key);
    if (item !== undefined) {
      responses[name]?.push(itemToSdk(paths === undefined ? item : project(item, paths)));
    }
    const bytes = item === undefined ? 0 : itemBytes(item);
    return { table: name, units: tableUnits(readUnits(bytes, request.ConsistentRead === true)) };
  });

  const back: Record<string, KeysAndAttributes> = {};
  for (const { name, request, key } of left) {
    const entry = (back[name] ??= { ...request, Keys: [] });
    entry.Keys?.push(itemToSdk(key.attributes));
  }
  const capacity = batchCapacity(input.ReturnConsumedCapacity, spent);
  return {
    Responses: responses,
    UnprocessedKeys: back,
    ...(capacity === undefined ? {} : { ConsumedCapacity: capacity }),
    $metadata: metadata(200),
  };
}

function parseReads(table: Table, request: KeysAndAttributes): Read[] {
  assertParameters("BatchGetItem", request, PARAMETERS);
  const placeholders = new Placeholders(request.ExpressionAttributeNames, undefined);
  const text = request.ProjectionExpression;
  const paths = text === undefined ? undefined : parseProjection(text, placeholders);
  placeholders.assertAllUsed(paths !== undefined);
  return (request.Keys ?? []).map((attributes) => {
    const key = table.parseKey(attributes);
    return { name: table.schema.name, table, key, request, paths };
  });
}
