import type { QueryCommandInput, QueryCommandOutput } from "@aws-sdk/client-dynamodb";
import { validationError } from "../errors.ts";
import { attributesOf, type Condition } from "../expression/condition.ts";
import { satisfies } from "../expression/evaluate-condition.ts";
import { parseKeyCondition } from "../expression/key-condition.ts";
import { parseCondition } from "../expression/parse-condition.ts";
import { Placeholders } from "../expression/placeholders.ts";
import { partitionOf, type Row } from "../ordered-rows.ts";
import { keyAttributes, type KeyShape } from "../schema.ts";
import { assertParameters, type Store } from "./context.ts";
import { projectionOf, readPage, sourceOf, startPosition } from "./page.ts";

const PARAMETERS = [
  "TableName",
  "IndexName",
  "KeyConditionExpression",
  "FilterExpression",
  "ProjectionExpression",
  "ExpressionAttributeNames",
  "ExpressionAttributeValues",
  "Select",
  "Limit",
  "ScanIndexForward",
  "ExclusiveStartKey",
  "ConsistentRead",
  "ReturnConsumedCapacity",
];

export function query(store: Store, input: QueryCommandInput): QueryCommandOutput {
  assertParameters("Query", input, PARAMETERS);
  const table = store.table(input.TableName);
  const source = sourceOf(table, input);
  const placeholders = new Placeholders(input.ExpressionAttributeNames, input.ExpressionAttributeValues);
  if (input.KeyConditionExpression === undefined) {
    throw validationError(
      "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
    );
  }
  const key = parseKeyCondition(input.KeyConditionExpression, source.shape, placeholders);
  const filterText = input.FilterExpression;
  const filter = filterText === undefined ? undefined : parseCondition(filterText, "FilterExpression", placeholders);
  if (filter !== undefined) assertNoKeyAttribute(filter, source.shape);
  const paths = projectionOf(source, input, placeholders);
  placeholders.assertAllUsed(true);

  const partition = partitionOf(key.hash);
  const startAfter = startPosition(source, input.ExclusiveStartKey);
  if (startAfter !== undefined && startAfter.partition !== partition) {
    throw validationError("The provided starting key is outside query boundaries based on provided conditions");
  }
  const walked = source.rows.walk({ partition, startAfter, forward: input.ScanIndexForward !== false });
  const rows = key.range === undefined ? walked : matching(walked, key.range);
  return readPage({ source, rows, filter, paths, pageBytes: store.pageBytes }, input);
}

function* matching(rows: Iterable<Row>, range: Condition): Generator<Row> {
  for (const row of rows) if (satisfies(range, row.item)) yield row;
}

function assertNoKeyAttribute(filter: Condition, shape: KeyShape): void {
  const keys = keyAttributes(shape).map(({ name }) => name);
  const name = attributesOf(filter).find((attribute) => keys.includes(attribute));
  if (name !== undefined) {
    throw validationError(
      `Filter Expression can only contain non-primary key attributes: Primary key attribute: ${name}`,
    );
  }
}
