import type { Clock } from "../../../shared/clock.ts";
import { writeUnits, type Units } from "./capacity.ts";
import { validationError } from "./errors.ts";
import { keyText, OrderedRows, partitionOf, type Position, type Row } from "./ordered-rows.ts";
import { keyAttributes, type KeyAttribute, type TableSchema } from "./schema.ts";
import { indexWriteUnits, SecondaryIndex } from "./secondary-index.ts";
import type { ChangeStream } from "./stream.ts";
import { equalItems, itemBytes, itemFromSdk, type Item, type SdkItem, type Value } from "./values.ts";

/** 400 KB, names included. */
const MAX_ITEM_BYTES = 400 * 1024;
const MAX_HASH_BYTES = 2048;
const MAX_RANGE_BYTES = 1024;

export interface PrimaryKey {
  readonly id: string;
  readonly attributes: Item;
  readonly position: Position;
}

export interface TableParts {
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly stream: ChangeStream;
  /** Drawn once per written index entry. */
  readonly indexLagMs: () => number;
}

/** One table with its indexes and its stream. Writes are validated by the caller first and then always succeed. */
export class Table {
  readonly schema: TableSchema;
  readonly rows = new OrderedRows();
  readonly #parts: TableParts;
  readonly #items = new Map<string, Item>();
  readonly #indexes: readonly SecondaryIndex[];

  constructor(schema: TableSchema, parts: TableParts) {
    this.schema = schema;
    this.#parts = parts;
    this.#indexes = schema.indexes.map((index) => new SecondaryIndex(index));
  }

  get(key: PrimaryKey): Item | undefined {
    return this.#items.get(key.id);
  }

  index(name: string): SecondaryIndex {
    const index = this.#indexes.find((candidate) => candidate.schema.name === name);
    if (index === undefined) throw validationError(`The table does not have the specified index: ${name}`);
    return index;
  }

  indexRows(name: string): OrderedRows {
    return this.index(name).rowsAt(this.#parts.clock.monotonicMs());
  }

  /** The key of a request (`Key`, or a batch's), which must hold the key attributes and nothing else. */
  parseKey(attributes: SdkItem | undefined): PrimaryKey {
    const given = itemFromSdk(attributes ?? {});
    const shape = keyAttributes(this.schema);
    if (given.size !== shape.length || shape.some(({ name, type }) => given.get(name)?.type !== type)) {
      throw validationError("The provided key element does not match the schema");
    }
    return this.#primaryKey(given);
  }

  /** The key of a whole item, as PutItem checks it. */
  keyOfItem(item: Item): PrimaryKey {
    for (const { name, type } of keyAttributes(this.schema)) {
      const actual = item.get(name)?.type;
      if (actual === undefined) {
        throw validationError(`One or more parameter values were invalid: Missing the key ${name} in the item`);
      }
      if (actual !== type) {
        throw validationError(
          `One or more parameter values were invalid: Type mismatch for key ${name} expected: ${type} actual: ${actual}`,
        );
      }
    }
    return this.#primaryKey(item);
  }

  /** ValidationException for an item that is too large or has an index key attribute of the wrong type. */
  checkStorable(item: Item, tooLarge = "Item size has exceeded the maximum allowed size"): void {
    for (const index of this.schema.indexes) {
      for (const attribute of keyAttributes(index)) checkIndexKey(index.name, attribute, item.get(attribute.name));
    }
    if (itemBytes(item) > MAX_ITEM_BYTES) throw validationError(tooLarge);
  }

  /** Puts or (with undefined) deletes, updates indexes and stream, and returns what it cost. */
  write(key: PrimaryKey, next: Item | undefined): Units {
    const old = this.#items.get(key.id);
    if (next === undefined) {
      this.#items.delete(key.id);
      this.rows.remove(key.position);
    } else {
      this.#items.set(key.id, next);
      this.rows.put({ position: key.position, item: next });
    }
    const indexes = this.#writeIndexes(key.id, old, next);
    this.#publish(key, old, next);
    return { table: writeUnits(Math.max(sizeOf(old), sizeOf(next))), indexes };
  }

  #writeIndexes(id: string, old: Item | undefined, next: Item | undefined): Map<string, number> {
    const units = new Map<string, number>();
    for (const index of this.#indexes) {
      const newRow: Row | undefined = index.rowOf(id, next);
      const cost = indexWriteUnits(index.rowOf(id, old), newRow);
      if (cost === 0) continue;
      units.set(index.schema.name, cost);
      index.schedule(id, newRow, this.#parts.clock.monotonicMs(), this.#parts.indexLagMs());
    }
    return units;
  }

  #publish(key: PrimaryKey, oldItem: Item | undefined, newItem: Item | undefined): void {
    const { name: table, streamViewType: viewType } = this.schema;
    if (viewType === undefined || (oldItem === undefined && newItem === undefined)) return;
    if (oldItem !== undefined && newItem !== undefined && equalItems(oldItem, newItem)) return;
    this.#parts.stream.publish({ table, viewType, keys: key.attributes, oldItem, newItem });
  }

  #primaryKey(item: Item): PrimaryKey {
    const { hash, range } = this.schema;
    const hashValue = checkedKeyValue(hash, item, MAX_HASH_BYTES);
    const rangeValue = range === undefined ? undefined : checkedKeyValue(range, item, MAX_RANGE_BYTES);
    const named = [[hash.name, hashValue] as const];
    if (range !== undefined && rangeValue !== undefined) named.push([range.name, rangeValue]);
    return {
      id: JSON.stringify(named.map(([, value]) => keyText(value))),
      attributes: new Map(named),
      position: { partition: partitionOf(hashValue), range: rangeValue, tie: "" },
    };
  }
}

function checkedKeyValue({ name }: KeyAttribute, item: Item, maxBytes: number): Value {
  const value = item.get(name);
  if (value === undefined) throw new Error(`key attribute ${name} was not checked`);
  const bytes = value.type === "S" ? Buffer.byteLength(value.value) : value.type === "B" ? value.value.length : 1;
  if (bytes === 0) {
    throw validationError(
      "One or more parameter values are not valid. " +
        `The AttributeValue for a key attribute cannot contain an empty string value. Key: ${name}`,
    );
  }
  if (bytes > maxBytes) {
    throw validationError(
      `One or more parameter values were invalid: Size of key ${name} has exceeded the maximum of ${maxBytes} bytes`,
    );
  }
  return value;
}

function checkIndexKey(indexName: string, { name, type }: KeyAttribute, value: Value | undefined): void {
  if (value === undefined) return;
  if (value.type !== type) {
    throw validationError(
      `One or more parameter values were invalid: Type mismatch for Index Key ${name} ` +
        `Expected: ${type} Actual: ${value.type} IndexName: ${indexName}`,
    );
  }
  if ((value.type === "S" || value.type === "B") && value.value.length === 0) {
    throw validationError(
      "One or more parameter values are not valid. A value specified for a secondary index key is not supported. " +
        "The AttributeValue for a key attribute cannot contain an empty string value. " +
        `IndexName: ${indexName}, IndexKey: ${name}`,
    );
  }
}

function sizeOf(item: Item | undefined): number {
  return item === undefined ? 0 : itemBytes(item);
}
