import type { ScanCommandInput, ScanCommandOutput } from "@aws-sdk/client-dynamodb";
import { parseCondition } from "../expression/parse-condition.ts";
import { Placeholders } from "../expression/placeholders.ts";
import { assertParameters, type Store } from "./context.ts";
import { projectionOf, readPage, sourceOf, startPosition } from "./page.ts";

const PARAMETERS = [
  "TableName",
  "IndexName",
  "FilterExpression",
  "ProjectionExpression",
  "ExpressionAttributeNames",
  "ExpressionAttributeValues",
  "Select",
  "Limit",
  "ExclusiveStartKey",
  "ConsistentRead",
  "ReturnConsumedCapacity",
];

export function scan(store: Store, input: ScanCommandInput): ScanCommandOutput {
  assertParameters("Scan", input, PARAMETERS);
  const source = sourceOf(store.table(input.TableName), input);
  const placeholders = new Placeholders(input.ExpressionAttributeNames, input.ExpressionAttributeValues);
  const text = input.FilterExpression;
  const filter = text === undefined ? undefined : parseCondition(text, "FilterExpression", placeholders);
  const paths = projectionOf(source, input, placeholders);
  placeholders.assertAllUsed(filter !== undefined || paths !== undefined);
  const rows = source.rows.walk({ startAfter: startPosition(source, input.ExclusiveStartKey) });
  return readPage({ source, rows, filter, paths, pageBytes: store.pageBytes }, input);
}
