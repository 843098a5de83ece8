import { writeUnits } from "./capacity.ts";
import { OrderedRows, partitionOf, type Position, type Row } from "./ordered-rows.ts";
import type { IndexSchema } from "./schema.ts";
import { equalItems, equalValues, itemBytes, type Item } from "./values.ts";

interface PendingChange {
  readonly dueMs: number;
  readonly id: string;
  readonly row: Row | undefined;
}

/**
 * A global secondary index. Changes become visible to readers when they are due and not before. Changes of one item stay
 * in order; those of different items may overtake each other, as in DynamoDB.
 */
export class SecondaryIndex {
  readonly schema: IndexSchema;
  readonly #rows = new OrderedRows();
  readonly #visible = new Map<string, Position>();
  /** By due time; equal times in order of arrival. */
  readonly #pending: PendingChange[] = [];
  readonly #lastDueMs = new Map<string, number>();

  constructor(schema: IndexSchema) {
    this.schema = schema;
  }

  /** The index's row for an item; undefined when the item lacks a key attribute (the index is sparse). */
  rowOf(id: string, item: Item | undefined): Row | undefined {
    const hash = item?.get(this.schema.hash.name);
    const range = this.schema.range === undefined ? undefined : item?.get(this.schema.range.name);
    if (item === undefined || hash === undefined) return undefined;
    if (this.schema.range !== undefined && range === undefined) return undefined;
    return { position: { partition: partitionOf(hash), range, tie: id }, item: this.#project(item) };
  }

  schedule(id: string, row: Row | undefined, nowMs: number, lagMs: number): void {
    const dueMs = Math.max(nowMs + lagMs, this.#lastDueMs.get(id) ?? -Infinity);
    this.#lastDueMs.set(id, dueMs);
    const later = this.#pending.findIndex((change) => change.dueMs > dueMs);
    this.#pending.splice(later < 0 ? this.#pending.length : later, 0, { dueMs, id, row });
    this.rowsAt(nowMs);
  }

  /** What a reader sees at this moment. */
  rowsAt(nowMs: number): OrderedRows {
    for (let next = this.#pending[0]; next !== undefined && next.dueMs <= nowMs; next = this.#pending[0]) {
      this.#pending.shift();
      this.#apply(next);
    }
    return this.#rows;
  }

  #apply({ id, row, dueMs }: PendingChange): void {
    const old = this.#visible.get(id);
    if (old !== undefined) this.#rows.remove(old);
    this.#visible.delete(id);
    if (row !== undefined) {
      this.#rows.put(row);
      this.#visible.set(id, row.position);
    }
    if (this.#lastDueMs.get(id) === dueMs) this.#lastDueMs.delete(id);
  }

  #project(item: Item): Item {
    const { projected } = this.schema;
    return projected === "ALL" ? item : new Map([...item].filter(([name]) => projected.has(name)));
  }
}

/**
 * Write units of an index for one base write (AWS: throughput considerations for global secondary indexes): a changed key
 * is a delete and a put, a changed projected attribute or an entry that comes or goes is one write, no change is free.
 */
export function indexWriteUnits(old: Row | undefined, next: Row | undefined): number {
  if (old === undefined || next === undefined) {
    const only = old ?? next;
    return only === undefined ? 0 : writeUnits(itemBytes(only.item));
  }
  if (!sameKey(old.position, next.position)) return writeUnits(itemBytes(old.item)) + writeUnits(itemBytes(next.item));
  if (equalItems(old.item, next.item)) return 0;
  return writeUnits(Math.max(itemBytes(old.item), itemBytes(next.item)));
}

function sameKey(a: Position, b: Position): boolean {
  if (a.partition !== b.partition) return false;
  return a.range === undefined || b.range === undefined ? a.range === b.range : equalValues(a.range, b.range);
}
