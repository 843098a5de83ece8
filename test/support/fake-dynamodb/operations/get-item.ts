import type { GetItemCommandInput, GetItemCommandOutput } from "@aws-sdk/client-dynamodb";
import { consumedCapacity, readUnits, tableUnits } from "../capacity.ts";
import { metadata } from "../errors.ts";
import { Placeholders } from "../expression/placeholders.ts";
import { parseProjection, project } from "../expression/projection.ts";
import { itemBytes, itemToSdk } from "../values.ts";
import { assertParameters, type Store } from "./context.ts";

const PARAMETERS = [
  "TableName",
  "Key",
  "ConsistentRead",
  "ProjectionExpression",
  "ExpressionAttributeNames",
  "ReturnConsumedCapacity",
];

export function getItem(store: Store, input: GetItemCommandInput): GetItemCommandOutput {
  assertParameters("GetItem", input, PARAMETERS);
  const table = store.table(input.TableName);
  const placeholders = new Placeholders(input.ExpressionAttributeNames, undefined);
  const text = input.ProjectionExpression;
  const paths = text === undefined ? undefined : parseProjection(text, placeholders);
  placeholders.assertAllUsed(paths !== undefined);
  const item = table.get(table.parseKey(input.Key));
  const units = readUnits(item === undefined ? 0 : itemBytes(item), input.ConsistentRead === true);
  const capacity = consumedCapacity(input.ReturnConsumedCapacity, table.schema.name, tableUnits(units));
  return {
    ...(item === undefined ? {} : { Item: itemToSdk(paths === undefined ? item : project(item, paths)) }),
    ...(capacity === undefined ? {} : { ConsumedCapacity: capacity }),
    $metadata: metadata(200),
  };
}
