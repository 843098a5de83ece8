import type { AttributeValue, QueryCommandInput, QueryCommandOutput, ScanCommandInput } from "@aws-sdk/client-dynamodb";
import { consumedCapacity, readUnits, type Units } from "../capacity.ts";
import { metadata, validationError } from "../errors.ts";
import type { Condition } from "../expression/condition.ts";
import { satisfies } from "../expression/evaluate-condition.ts";
import type { Path } from "../expression/paths.ts";
import type { Placeholders } from "../expression/placeholders.ts";
import { parseProjection, project } from "../expression/projection.ts";
import { partitionOf, type OrderedRows, type Position, type Row } from "../ordered-rows.ts";
import { keyAttributes, type KeyShape } from "../schema.ts";
import type { SecondaryIndex } from "../secondary-index.ts";
import type { Table } from "../table.ts";
import { itemBytes, itemFromSdk, itemToSdk, type Item } from "../values.ts";

type ReadInput = QueryCommandInput | ScanCommandInput;

/** What a Query or Scan reads from: the table itself or one of its indexes. */
export interface Source {
  readonly table: Table;
  readonly index: SecondaryIndex | undefined;
  readonly shape: KeyShape;
  readonly rows: OrderedRows;
}

export function sourceOf(table: Table, input: ReadInput): Source {
  if (input.IndexName === undefined) return { table, index: undefined, shape: table.schema, rows: table.rows };
  const index = table.index(input.IndexName);
  if (input.ConsistentRead === true) {
    throw validationError("Consistent reads are not supported on global secondary indexes");
  }
  return { table, index, shape: index.schema, rows: table.indexRows(input.IndexName) };
}

/** The projection, checked together with Select; undefined for everything that the source holds. */
export function projectionOf(source: Source, input: ReadInput, placeholders: Placeholders): Path[] | undefined {
  const { ProjectionExpression: text, Select: select } = input;
  const projected = source.index?.schema.projected;
  if (text !== undefined && select !== undefined && select !== "SPECIFIC_ATTRIBUTES") {
    const what = select === "COUNT" ? "only the Count" : select;
    throw validationError(`Cannot specify the ProjectionExpression when choosing to get ${what}`);
  }
  if (select === "SPECIFIC_ATTRIBUTES" && text === undefined) {
    throw validationError("Must specify the ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES");
  }
  if (select === "ALL_PROJECTED_ATTRIBUTES" && source.index === undefined) {
    throw validationError("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName");
  }
  if (select === "ALL_ATTRIBUTES" && source.index !== undefined && projected !== "ALL") {
    throw validationError(
      "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for " +
        `global secondary index ${source.index.schema.name} because its projection type is not ALL`,
    );
  }
  if (text === undefined) return undefined;
  const paths = parseProjection(text, placeholders);
  if (source.index !== undefined && projected !== undefined && projected !== "ALL") {
    const absent = paths.map((path) => String(path[0])).filter((name) => !projected.has(name));
    if (absent.length > 0) {
      throw validationError(
        "One or more parameter values were invalid: " +
          `Global secondary index ${source.index.schema.name} does not project [${absent.join(", ")}]`,
      );
    }
  }
  return paths;
}

/** Where the page before ended. The key names the row's keys and nothing else; it need not exist any more. */
export function startPosition(source: Source, key: Record<string, AttributeValue> | undefined): Position | undefined {
  if (key === undefined) return undefined;
  const given = itemFromSdk(key);
  const expected = keysOf(source);
  const hash = given.get(source.shape.hash.name);
  if (
    hash === undefined ||
    given.size !== expected.size ||
    [...expected].some(([name, type]) => given.get(name)?.type !== type)
  ) {
    throw validationError("The provided starting key is invalid");
  }
  const range = source.shape.range === undefined ? undefined : given.get(source.shape.range.name);
  const tie = source.index === undefined ? "" : source.table.keyOfItem(given).id;
  return { partition: partitionOf(hash), range, tie };
}

export interface PageRequest {
  readonly source: Source;
  readonly rows: Iterable<Row>;
  readonly filter: Condition | undefined;
  readonly paths: readonly Path[] | undefined;
  readonly pageBytes: number;
}

/** Reads rows up to Limit or the page size. Like DynamoDB it does not look whether another row follows the last one. */
export function readPage(request: PageRequest, input: ReadInput): QueryCommandOutput {
  const { source, paths } = request;
  if (input.Limit !== undefined && input.Limit < 1) {
    throw validationError(
      `1 validation error detected: Value '${input.Limit}' at 'limit' failed to satisfy constraint: ` +
        "Member must have value greater than or equal to 1",
    );
  }
  const found: Item[] = [];
  let scanned = 0;
  let bytes = 0;
  let last: Item | undefined;
  for (const { item } of request.rows) {
    scanned++;
    bytes += itemBytes(item);
    if (request.filter === undefined || satisfies(request.filter, item)) found.push(item);
    if (scanned === input.Limit || bytes >= request.pageBytes) {
      last = item;
      break;
    }
  }
  const name = source.table.schema.name;
  const capacity = consumedCapacity(input.ReturnConsumedCapacity, name, unitsOf(source, bytes, input.ConsistentRead));
  const shown = paths === undefined ? found : found.map((item) => project(item, paths));
  return {
    ...(input.Select === "COUNT" ? {} : { Items: shown.map(itemToSdk) }),
    Count: found.length,
    ScannedCount: scanned,
    ...(last === undefined ? {} : { LastEvaluatedKey: itemToSdk(keyOf(source, last)) }),
    ...(capacity === undefined ? {} : { ConsumedCapacity: capacity }),
    $metadata: metadata(200),
  };
}

function unitsOf(source: Source, bytes: number, consistent: boolean | undefined): Units {
  const units = readUnits(bytes, consistent === true);
  if (source.index === undefined) return { table: units, indexes: new Map() };
  return { table: 0, indexes: new Map([[source.index.schema.name, units]]) };
}

/** Names and types of the attributes that identify a row of the source. */
function keysOf(source: Source): Map<string, string> {
  const attributes = [...keyAttributes(source.shape), ...keyAttributes(source.table.schema)];
  return new Map(attributes.map(({ name, type }) => [name, type]));
}

function keyOf(source: Source, item: Item): Item {
  const names = keysOf(source);
  return new Map([...item].filter(([name]) => names.has(name)));
}
