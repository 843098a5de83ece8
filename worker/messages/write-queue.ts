import type { Clock } from "../../shared/clock.ts";
import { fullJitter, type Random } from "../../shared/random.ts";
import type { Entry, Write } from "./entry.ts";
import { Fifo } from "./fifo.ts";
import type { LaneQueue } from "./lane-queue.ts";
import { MAX_BATCH_BYTES, MAX_BATCH_ITEMS, RETRY_BASE_MS, RETRY_CAP_MS } from "./limits.ts";

interface Reservation {
  readonly holder: Entry;
  readonly waiting: LaneQueue[];
}

/**
 * Composes batches from all lanes by turns, one item per lane and turn, so that a lane with thousands of rows takes no
 * more of a batch than its neighbour with one.
 *
 * A key is reserved from the moment its row is first taken until the row is settled. So no batch holds a key twice, no
 * two requests that write the same key are under way at once, and of one lane's rows with the same key the later is
 * written later.
 *
 * A lane that asks for it has its rows in one batch at a time, so they are stored in the order they came: a process that
 * is killed leaves a stored stream that ends early, not one with a hole in its middle. (Rows that DynamoDB leaves
 * unprocessed are the first of the lane's next batch.)
 */
export class WriteQueue {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #onReady: () => void;
  /** May hold lanes that came to rest meanwhile; their turn is skipped. */
  readonly #round = new Fifo<LaneQueue>();
  readonly #resting = new Set<LaneQueue>();
  readonly #reserved = new Map<string, Reservation>();
  #stopped = false;
  /** Of the ready lanes. */
  #items = 0;
  #bytes = 0;

  constructor(deps: { clock: Clock; random: Random; onReady: () => void }) {
    this.#clock = deps.clock;
    this.#random = deps.random;
    this.#onReady = deps.onReady;
  }

  get empty(): boolean {
    return this.#items === 0;
  }

  /** Waiting longer would not make the next batch larger. */
  get full(): boolean {
    return this.#items >= MAX_BATCH_ITEMS || this.#bytes >= MAX_BATCH_BYTES;
  }

  add(queue: LaneQueue, entry: Entry): void {
    this.#change(queue, () => queue.add(entry));
    if (queue.state === "idle") this.#makeReady(queue);
  }

  /** A further write for an entry that holds its key: the head behind the parts. */
  addAgain(queue: LaneQueue, write: Write): void {
    this.#change(queue, () => queue.addAgain(write));
    // A blocked lane has something to send after all; its blocked row is looked at again when its turn comes.
    if (queue.state === "idle" || queue.state === "blocked") this.#makeReady(queue);
  }

  /** Up to 25 writes whose keys are reserved from now on; none when every ready lane turns out to be blocked. */
  compose(): Write[] {
    const batch: Write[] = [];
    let bytes = 0;
    while (batch.length < MAX_BATCH_ITEMS) {
      const queue = this.#round.peek();
      if (queue === undefined) break;
      const next = queue.state === "ready" ? queue.peek() : undefined;
      if (next !== undefined && batch.length > 0 && bytes + next.bytes > MAX_BATCH_BYTES) break;
      this.#round.shift();
      queue.inRound = false;
      if (next === undefined || this.#blocks(queue, next.entry)) continue;
      const write = this.#change(queue, () => queue.take());
      if (queue.items > 0) this.#joinRound(queue);
      else queue.state = "idle";
      if (write === undefined) continue;
      batch.push(write);
      bytes += write.bytes;
    }
    for (const queue of orderedQueuesOf(batch)) {
      queue.underWay++;
      if (queue.state === "ready") this.#discount(queue);
      if (queue.state === "ready" || queue.state === "idle") queue.state = "sent";
    }
    return batch;
  }

  /** A composed batch is done with: each of its writes is settled or was put back. */
  delivered(batch: readonly Write[]): void {
    for (const queue of orderedQueuesOf(batch)) {
      queue.underWay--;
      if (queue.state === "sent") this.#makeReady(queue);
    }
  }

  /** The entry is durable or refused: its key is free again. */
  settled(entry: Entry): void {
    const reservation = this.#reserved.get(entry.key);
    if (reservation?.holder !== entry) return;
    this.#reserved.delete(entry.key);
    for (const queue of reservation.waiting) {
      if (queue.state === "blocked") this.#makeReady(queue);
    }
  }

  /** Drops whatever of a refused entry was not taken yet. */
  abandon(queue: LaneQueue, entry: Entry): void {
    this.#change(queue, () => queue.abandon(entry));
    if (queue.state === "ready" && queue.items === 0) queue.state = "idle";
  }

  /** DynamoDB took something of this lane. */
  progressed(queue: LaneQueue): void {
    queue.throttles = 0;
  }

  /**
   * DynamoDB took these writes not now. Their lanes rest, the others go on: usually one hot partition is the reason, and
   * if it is the whole table, every lane comes to rest.
   */
  putBack(writes: readonly Write[]): void {
    if (this.#stopped) return;
    const queues = new Set<LaneQueue>();
    for (const write of writes) {
      if (write.entry.settled) continue;
      const { queue } = write.entry.lane;
      this.#change(queue, () => queue.addAgain(write));
      queues.add(queue);
    }
    for (const queue of queues) if (queue.state !== "resting") this.#rest(queue);
  }

  /** No lane wakes up any more, nor do lanes come to rest. */
  stop(): void {
    this.#stopped = true;
    for (const queue of this.#resting) queue.cancelRest?.();
    this.#resting.clear();
  }

  #rest(queue: LaneQueue): void {
    if (queue.state === "ready") this.#discount(queue);
    queue.state = "resting";
    const delayMs = fullJitter(RETRY_BASE_MS, RETRY_CAP_MS, queue.throttles, this.#random);
    queue.throttles++;
    this.#resting.add(queue);
    queue.cancelRest = this.#clock.after(delayMs, () => {
      this.#resting.delete(queue);
      queue.cancelRest = undefined;
      this.#makeReady(queue);
      this.#onReady();
    });
  }

  #blocks(queue: LaneQueue, entry: Entry): boolean {
    const reservation = this.#reserved.get(entry.key);
    if (reservation === undefined) {
      this.#reserved.set(entry.key, { holder: entry, waiting: [] });
      return false;
    }
    if (reservation.holder === entry) return false;
    reservation.waiting.push(queue);
    this.#discount(queue);
    queue.state = "blocked";
    return true;
  }

  #makeReady(queue: LaneQueue): void {
    if (queue.underWay > 0) {
      queue.state = "sent";
      return;
    }
    if (queue.items === 0) {
      queue.state = "idle";
      return;
    }
    queue.state = "ready";
    this.#count(queue);
    if (!queue.inRound) this.#joinRound(queue);
  }

  #joinRound(queue: LaneQueue): void {
    queue.inRound = true;
    this.#round.push(queue);
  }

  #change<T>(queue: LaneQueue, change: () => T): T {
    if (queue.state !== "ready") return change();
    this.#discount(queue);
    const result = change();
    this.#count(queue);
    return result;
  }

  #count(queue: LaneQueue): void {
    this.#items += queue.items;
    this.#bytes += queue.bytes;
  }

  #discount(queue: LaneQueue): void {
    this.#items -= queue.items;
    this.#bytes -= queue.bytes;
  }
}

function orderedQueuesOf(batch: readonly Write[]): ReadonlySet<LaneQueue> {
  return new Set(batch.map((write) => write.entry.lane.queue).filter((queue) => queue.inOrder));
}
