import { partsPartition, type MessageRow } from "../../shared/messages/row.ts";
import { headBytes, partBytes, rowBytes } from "./item-size.ts";
import type { MessageLane } from "./lane.ts";
import { LargePayload } from "./large-payload.ts";
import { MAX_ITEM_BYTES, PART_BYTES } from "./limits.ts";
import type { Tracked } from "./prefix.ts";

/** One row on its way: pending until it is durable or refused. */
export class Entry implements Tracked {
  readonly lane: MessageLane;
  readonly seq: bigint;
  readonly cursor: string | undefined;
  readonly checkpointed: boolean;
  /** The place in the order of all pushes of the writer. */
  readonly ticket: number;
  /** What it counts for while it is pending: its size as one item. */
  readonly bytes: number;
  /** Names the item; no seq contains a '#', so no two items share a name. */
  readonly key: string;
  durable = false;
  refused = false;
  /** Parts that are durable. */
  storedParts = 0;
  readonly large: LargePayload | undefined;
  #row: MessageRow | undefined;

  constructor(lane: MessageLane, row: MessageRow, checkpointed: boolean, ticket: number) {
    this.lane = lane;
    this.seq = row.seq;
    this.cursor = row.cursor;
    this.checkpointed = checkpointed;
    this.ticket = ticket;
    this.bytes = rowBytes(row);
    this.key = partsPartition(row.connectionId, row.seq);
    this.large = this.bytes > MAX_ITEM_BYTES ? new LargePayload(row.payload) : undefined;
    this.#row = row;
  }

  get settled(): boolean {
    return this.durable || this.refused;
  }

  /** @throws {Error} once the entry is settled: its payload is gone, and nobody has a reason to write it again. */
  get row(): MessageRow {
    if (this.#row === undefined) throw new Error(`${this.key} is settled and cannot be written again`);
    return this.#row;
  }

  settle(outcome: "durable" | "refused"): void {
    if (outcome === "durable") this.durable = true;
    else this.refused = true;
    // The entry may stay in the prefix behind a gap; its payload must not.
    this.#row = undefined;
  }
}

/** One item of a BatchWriteItem request. */
export interface Write {
  readonly entry: Entry;
  /** 0: the row, or the head of a message in parts; else the part's number. */
  readonly part: number;
  readonly key: string;
  readonly bytes: number;
}

export function wholeWrite(entry: Entry): Write {
  return { entry, part: 0, key: entry.key, bytes: entry.bytes };
}

export function headWrite(entry: Entry): Write {
  return { entry, part: 0, key: entry.key, bytes: headBytes(entry.row) };
}

export function partWrite(entry: Entry, part: number): Write {
  return { entry, part, key: `${entry.key}#${part}`, bytes: partBytes(entry.row, PART_BYTES) };
}
