import { formatDecimal } from "./decimal.ts";
import { compareValues, type Item, type Value } from "./values.ts";

/** Where a row stands: by partition, then by sort key, then (in an index, whose keys may repeat) by the base item. */
export interface Position {
  readonly partition: string;
  readonly range?: Value | undefined;
  readonly tie: string;
}

export interface Row {
  readonly position: Position;
  readonly item: Item;
}

/** Rows of a table or an index in the order in which Scan and Query show them. */
export class OrderedRows {
  readonly #rows: Row[] = [];

  put(row: Row): void {
    const at = this.#firstNot((position) => comparePositions(position, row.position) < 0);
    this.#rows.splice(at, this.#isAt(at, row.position) ? 1 : 0, row);
  }

  remove(position: Position): void {
    const at = this.#firstNot((other) => comparePositions(other, position) < 0);
    if (this.#isAt(at, position)) this.#rows.splice(at, 1);
  }

  /** Rows of one partition, or of all, beginning behind `startAfter` in the direction of travel. */
  *walk(options: { partition?: string; startAfter?: Position | undefined; forward?: boolean }): Generator<Row> {
    const { partition, startAfter, forward = true } = options;
    let from = partition === undefined ? 0 : this.#firstNot((p) => p.partition < partition);
    let to = partition === undefined ? this.#rows.length : this.#firstNot((p) => p.partition <= partition);
    if (startAfter !== undefined && forward) {
      from = Math.max(
        from,
        this.#firstNot((p) => comparePositions(p, startAfter) <= 0),
      );
    } else if (startAfter !== undefined) {
      to = Math.min(
        to,
        this.#firstNot((p) => comparePositions(p, startAfter) < 0),
      );
    }
    const rows = this.#rows.slice(from, to);
    yield* forward ? rows : rows.reverse();
  }

  #isAt(at: number, position: Position): boolean {
    const row = this.#rows[at];
    return row !== undefined && comparePositions(row.position, position) === 0;
  }

  /** The first place whose row does not satisfy `before`, which must hold for a prefix of the rows. */
  #firstNot(before: (position: Position) => boolean): number {
    let low = 0;
    let high = this.#rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const row = this.#rows[middle];
      if (row !== undefined && before(row.position)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** A key value as text, one for one. */
export function keyText(value: Value): string {
  switch (value.type) {
    case "S":
      return `S${value.value}`;
    case "N":
      return `N${formatDecimal(value.value)}`;
    case "B":
      return `B${value.value.toString("hex")}`;
    default:
      throw new Error(`a value of type ${value.type} cannot be a key`);
  }
}

/** Partitions are ordered by a hash of their key, as DynamoDB's are: no test may come to rely on an order of ids. */
export function partitionOf(hash: Value): string {
  const text = keyText(hash);
  let digest = 0x811c9dc5;
  for (const byte of Buffer.from(text)) digest = Math.imul(digest ^ byte, 0x01000193) >>> 0;
  return `${digest.toString(16).padStart(8, "0")}${text}`;
}

function comparePositions(a: Position, b: Position): number {
  return compareText(a.partition, b.partition) || compareRanges(a.range, b.range) || compareText(a.tie, b.tie);
}

function compareRanges(a: Value | undefined, b: Value | undefined): number {
  return a === undefined || b === undefined ? 0 : (compareValues(a, b) ?? 0);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
