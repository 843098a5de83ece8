import type { Checkpoint } from "../../shared/lease/index.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import type { MessageRow } from "../../shared/messages/row.ts";
import type { Entry } from "./entry.ts";
import { FlushGate } from "./flush-gate.ts";
import { LaneQueue } from "./lane-queue.ts";
import { DurablePrefix } from "./prefix.ts";

/** What a lane tells its holding. Called synchronously, from within `push` or when an answer of DynamoDB arrives. */
export interface LaneEvents {
  /**
   * DynamoDB refuses this message for good. The connection must be parked: later rows are still written, but the
   * checkpoint never passes this one. Called for each refused row.
   */
  onRefused(seq: bigint, problem: string): void;
  /** true: stop reading from this socket; false: read again. Only called on change, first with true. */
  onPressure(paused: boolean): void;
}

export interface LaneOptions {
  /**
   * Store rows in the order they came, at the price of one batch at a time. For feeds that cannot replay: a hole that a
   * kill leaves behind rows that were stored could not be filled again. Default false.
   */
  readonly inOrder?: boolean;
}

export interface PushOptions {
  /** false: a row of the side partition, which takes no part in the gap-free prefix. Default true. */
  readonly checkpointed?: boolean;
}

/** The messages of one holding. */
export interface Lane {
  /** Takes the row, always, also while paused: nothing is ever dropped. A large message's payload must not change. */
  push(row: MessageRow, options?: PushOptions): void;
  /**
   * The highest seq such that every checkpointed row up to it that was pushed is durably written, with the newest cursor
   * up to there. undefined before the first. It never falls, and never passes a refused row.
   */
  readonly checkpoint: Checkpoint | undefined;
  readonly pendingItems: number;
  /** As DynamoDB counts item sizes. */
  readonly pendingBytes: number;
  /**
   * Waits until everything pushed so far is settled, without any linger. True when all of it is durable; false when this
   * lane ever had a row refused, `signal` aborted or the writer stopped. Never rejects.
   */
  flush(signal?: AbortSignal): Promise<boolean>;
  /** No more rows come. Pending ones are still written, and `checkpoint` still moves; the events are not called any more. */
  close(): void;
}

/** The writer's side of a lane. */
export interface LaneHost {
  readonly logger: Logger;
  accept(lane: MessageLane, row: MessageRow, checkpointed: boolean): void;
  /** Writes without linger until `waiting` settles. */
  hurry(waiting: Promise<boolean>): void;
}

export class MessageLane implements Lane {
  readonly queue: LaneQueue;
  readonly #prefix = new DurablePrefix();
  readonly #gate = new FlushGate();
  readonly #host: LaneHost;
  #events: LaneEvents | undefined;
  #refused = false;
  #pendingBytes = 0;

  constructor(host: LaneHost, events: LaneEvents, options?: LaneOptions) {
    this.queue = new LaneQueue(options?.inOrder === true);
    this.#host = host;
    this.#events = events;
  }

  push(row: MessageRow, options?: PushOptions): void {
    this.#host.accept(this, row, options?.checkpointed !== false);
  }

  get checkpoint(): Checkpoint | undefined {
    return this.#prefix.checkpoint;
  }

  get pendingItems(): number {
    return this.#gate.pending;
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  async flush(signal?: AbortSignal): Promise<boolean> {
    const settled = this.#gate.wait(signal);
    this.#host.hurry(settled);
    return (await settled) && !this.#refused;
  }

  close(): void {
    this.#events = undefined;
  }

  /** Rows in memory because of this lane: durable ones behind a gap count too, or they could grow without bound. */
  get load(): { readonly items: number; readonly bytes: number } {
    return { items: Math.max(this.pendingItems, this.#prefix.size), bytes: this.#pendingBytes };
  }

  added(entry: Entry): void {
    this.#pendingBytes += entry.bytes;
    if (entry.checkpointed) this.#prefix.add(entry);
    this.#gate.add(entry.ticket);
  }

  /** The entry is durable. */
  stored(entry: Entry): void {
    this.#pendingBytes -= entry.bytes;
    if (entry.checkpointed) this.#prefix.advance();
    this.#gate.settle(entry.ticket, true);
  }

  refused(entry: Entry, problem: string): void {
    this.#pendingBytes -= entry.bytes;
    this.#refused = true;
    if (entry.checkpointed) this.#prefix.refuse(entry.seq);
    this.#gate.settle(entry.ticket, false);
    this.#announce((events) => events.onRefused(entry.seq, problem));
  }

  announcePressure(paused: boolean): void {
    this.#announce((events) => events.onPressure(paused));
  }

  stop(): void {
    this.#gate.end();
  }

  /** A listener that throws must not stop the writing for all the other lanes. */
  #announce(call: (events: LaneEvents) => void): void {
    if (this.#events === undefined) return;
    try {
      call(this.#events);
    } catch (error) {
      this.#host.logger.error(errorFields(error), "a lane's listener failed");
    }
  }
}
