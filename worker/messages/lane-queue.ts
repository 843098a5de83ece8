import type { Cancel } from "../../shared/clock.ts";
import { partWrite, wholeWrite, type Entry, type Write } from "./entry.ts";
import { Fifo } from "./fifo.ts";
import { PART_BYTES } from "./limits.ts";

/**
 * `idle`: nothing to write. `ready`: takes its turn in the next batch. `sent`: some of its rows are in a batch under
 * way, and the others must come after them. `resting`: backs off after DynamoDB left rows of this lane unprocessed. `blocked`: its next row has the key of a row
 * that is not settled yet.
 */
export type QueueState = "idle" | "ready" | "sent" | "resting" | "blocked";

/** What is still to be sent for one lane, in order: first what has to be sent again, then the rows as pushed. */
export class LaneQueue {
  state: QueueState = "idle";
  /** Answers in a row that left something of this lane unprocessed; sets the length of its rest. */
  throttles = 0;
  /** Its rows are in one batch at a time. */
  readonly inOrder: boolean;
  /** Batches under way that hold rows of this lane; counted for lanes that are stored in order. */
  underWay = 0;
  /** It has a place in the round of lanes that are asked for their next item. */
  inRound = false;
  cancelRest: Cancel | undefined;
  /** Bytes of `items`; a large message counts whole until its last part is taken. */
  bytes = 0;
  readonly #again = new Fifo<Write>();
  readonly #entries = new Fifo<Entry>();

  constructor(inOrder: boolean) {
    this.inOrder = inOrder;
  }

  get items(): number {
    return this.#again.size + this.#entries.size;
  }

  add(entry: Entry): void {
    this.#entries.push(entry);
    this.bytes += entry.bytes;
  }

  addAgain(write: Write): void {
    this.#again.push(write);
    this.bytes += write.bytes;
  }

  /** What `take` would take. `entry` holds its key already when some of it was taken before. */
  peek(): { readonly entry: Entry; readonly bytes: number } | undefined {
    const again = this.#again.peek();
    if (again !== undefined) return again;
    const entry = this.#entries.peek();
    return entry?.large === undefined ? entry && { entry, bytes: entry.bytes } : { entry, bytes: PART_BYTES };
  }

  take(): Write | undefined {
    const again = this.#again.shift();
    if (again !== undefined) {
      this.bytes -= again.bytes;
      return again;
    }
    const entry = this.#entries.peek();
    if (entry === undefined) return undefined;
    const write = entry.large === undefined ? wholeWrite(entry) : partWrite(entry, entry.large.next());
    if (entry.large?.complete !== false) {
      this.#entries.shift();
      this.bytes -= entry.bytes;
    }
    return write;
  }

  /** Takes out what is left of a message of which one part was refused. */
  abandon(entry: Entry): void {
    for (const write of this.#again.remove((one) => one.entry === entry)) this.bytes -= write.bytes;
    for (const one of this.#entries.remove((other) => other === entry)) this.bytes -= one.bytes;
  }
}
