import type { Checkpoint } from "../../shared/lease/index.ts";

/** A row as the prefix sees it. */
export interface Tracked {
  readonly seq: bigint;
  readonly cursor: string | undefined;
  durable: boolean;
}

const COMPACT_FROM = 1024;

/**
 * How far a lane's stream is durable without a gap.
 *
 * The rows are kept in the order of their seq, and the head moves only over durable ones. A batch that ends early marks
 * its rows as durable wherever they stand, but as long as one row before them is not, the head rests on that row: the
 * order in which batches end can delay the checkpoint, never move it past a gap. Killed at any moment, a holder has
 * therefore never claimed a row that is not in the table.
 */
export class DurablePrefix {
  /** Ordered by seq; those before the head are durable and done with. */
  readonly #rows: Tracked[] = [];
  #head = 0;
  #gap: bigint | undefined;
  #cursor: string | undefined;
  #checkpoint: Checkpoint | undefined;

  /** The cursor is that of the newest row up to `lastSeq` which had one. It never falls. */
  get checkpoint(): Checkpoint | undefined {
    return this.#checkpoint;
  }

  /** Rows that are kept in memory because of the order: pending ones and durable ones behind a gap. */
  get size(): number {
    return this.#rows.length - this.#head;
  }

  add(row: Tracked): void {
    if (this.#gap !== undefined && row.seq >= this.#gap) return;
    const last = this.#rows.at(-1);
    if (last === undefined || last.seq <= row.seq) this.#rows.push(row);
    else this.#rows.splice(this.#firstFrom(row.seq + 1n), 0, row);
  }

  /** To be called after rows became durable. */
  advance(): void {
    let row = this.#rows[this.#head];
    while (row?.durable === true) {
      const next = this.#rows[++this.#head];
      // A repeated seq is claimed when its last repetition is durable too.
      this.#claim(row, next?.seq !== row.seq);
      row = next;
    }
    this.#compact();
  }

  #claim(row: Tracked, last: boolean): void {
    // A repetition of what was claimed long ago is waited for like any row, but must not take the claim back.
    if (this.#checkpoint !== undefined && row.seq <= this.#checkpoint.lastSeq) return;
    this.#cursor = row.cursor ?? this.#cursor;
    if (!last) return;
    this.#checkpoint = { lastSeq: row.seq, ...(this.#cursor === undefined ? {} : { lastCursor: this.#cursor }) };
  }

  /** A row will never be durable: nothing from `seq` on is claimed, now or later. */
  refuse(seq: bigint): void {
    if (this.#gap !== undefined && this.#gap <= seq) return;
    this.#gap = seq;
    this.#rows.length = this.#firstFrom(seq);
  }

  /** Index of the first row, not before the head, whose seq is at least `seq`. */
  #firstFrom(seq: bigint): number {
    let low = this.#head;
    let high = this.#rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const row = this.#rows[middle];
      if (row !== undefined && row.seq < seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #compact(): void {
    if (this.#head === this.#rows.length) {
      this.#rows.length = 0;
      this.#head = 0;
    } else if (this.#head >= COMPACT_FROM && this.#head * 2 >= this.#rows.length) {
      this.#rows.splice(0, this.#head);
      this.#head = 0;
    }
  }
}
