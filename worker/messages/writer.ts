import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { sleep, type Cancel, type Clock } from "../../shared/clock.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import type { MessageRow } from "../../shared/messages/row.ts";
import { fullJitter, type Random } from "../../shared/random.ts";
import { Entry, headWrite, type Write } from "./entry.ts";
import { FlushGate } from "./flush-gate.ts";
import { MessageLane, type Lane, type LaneEvents, type LaneHost, type LaneOptions } from "./lane.ts";
import { RETRY_BASE_MS, RETRY_CAP_MS } from "./limits.ts";
import { Pressure } from "./pressure.ts";
import { sendBatch } from "./send-batch.ts";
import { WriteQueue } from "./write-queue.ts";

export type { Lane, LaneEvents, PushOptions } from "./lane.ts";

export interface WriterSettings {
  /** Bytes of received, not yet stored messages at which sockets are paused. */
  readonly maxBytes: number;
  /** The same in messages. */
  readonly maxItems: number;
  /** How long a batch that is not full waits for more. */
  readonly lingerMs: number;
  /** Requests under way at once. */
  readonly concurrency: number;
  /** Age at which rows may be removed. */
  readonly ttlSeconds: number;
}

export interface WriterMetrics {
  count(name: "MessagesStored" | "MessageWriteRetries" | "MessagesRefused", n?: number): void;
}

export interface WriterDeps {
  /** With a timeout for each attempt; sockets of its own keep message writes from holding up renewals. */
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: WriterMetrics;
  readonly settings: WriterSettings;
}

/**
 * Stores the messages of all connections of one worker, in batches across connections.
 *
 * Every row that was pushed is sent until DynamoDB has taken or refused it; while that does not succeed, sockets are paused
 * and memory stays within bounds. A lane's checkpoint covers durable rows only, so a process that is killed at any moment
 * leaves behind a checkpoint that is true.
 */
export class MessageWriter {
  readonly #deps: WriterDeps;
  readonly #queue: WriteQueue;
  readonly #pressure: Pressure;
  readonly #gate = new FlushGate();
  readonly #host: LaneHost;
  /** When each pending row was pushed (monotonic ms), by its ticket: oldest first. */
  readonly #pushedMs = new Map<number, number>();
  /** Lanes with pending rows. */
  readonly #busy = new Set<MessageLane>();
  readonly #running = new Set<Promise<void>>();
  readonly #requests = new Set<AbortController>();
  readonly #halt = new AbortController();
  #tickets = 0;
  #flushes = 0;
  #lingered = false;
  #cancelLinger: Cancel | undefined;
  #stopping: Promise<void> | undefined;

  constructor(deps: WriterDeps) {
    this.#deps = deps;
    this.#queue = new WriteQueue({ clock: deps.clock, random: deps.random, onReady: () => this.#pump() });
    this.#pressure = new Pressure(deps.settings);
    this.#host = {
      logger: deps.logger,
      accept: (lane, row, checkpointed) => this.#accept(lane, row, checkpointed),
      hurry: (waiting) => this.#hurry(waiting),
    };
  }

  lane(events: LaneEvents, options?: LaneOptions): Lane {
    return new MessageLane(this.#host, events, options);
  }

  get pendingItems(): number {
    return this.#pressure.items;
  }

  get pendingBytes(): number {
    return this.#pressure.bytes;
  }

  /** For how long the oldest row has been waiting that is neither stored nor refused, ms; 0 without any. */
  get oldestPendingMs(): number {
    for (const pushedMs of this.#pushedMs.values()) return this.#deps.clock.monotonicMs() - pushedMs;
    return 0;
  }

  /**
   * Waits until everything pushed so far, in all lanes, is settled. False when any of it was refused, `signal` aborted or
   * the writer stopped. Never rejects.
   */
  flushAll(signal?: AbortSignal): Promise<boolean> {
    const settled = this.#gate.wait(signal);
    this.#hurry(settled);
    return settled;
  }

  /**
   * With a signal: flushes, and when the signal aborts gives up, cutting off requests under way. Without: sends nothing
   * more, waits for the answers of requests under way. Afterwards no timer and no request is left; rows that are still
   * pending stay uncovered by their checkpoints. Repeatable; the first call decides.
   */
  stop(signal?: AbortSignal): Promise<void> {
    this.#stopping ??= this.#stop(signal);
    return this.#stopping;
  }

  async #stop(signal: AbortSignal | undefined): Promise<void> {
    if (signal !== undefined) await this.flushAll(signal);
    this.#halt.abort();
    this.#cancelLinger?.();
    this.#cancelLinger = undefined;
    this.#queue.stop();
    if (signal?.aborted === true) for (const request of this.#requests) request.abort();
    await Promise.all(this.#running);
    this.#gate.end();
    for (const lane of this.#busy) lane.stop();
    if (this.pendingItems > 0) {
      this.#deps.logger.warn({ pendingItems: this.pendingItems }, "message writer stopped with rows not stored");
    }
  }

  get #halted(): boolean {
    return this.#halt.signal.aborted;
  }

  #accept(lane: MessageLane, row: MessageRow, checkpointed: boolean): void {
    const entry = new Entry(lane, row, checkpointed, ++this.#tickets);
    this.#busy.add(lane);
    lane.added(entry);
    this.#gate.add(entry.ticket);
    this.#pushedMs.set(entry.ticket, this.#deps.clock.monotonicMs());
    this.#queue.add(lane.queue, entry);
    this.#pressure.added(lane, entry.bytes);
    this.#pump();
  }

  #hurry(waiting: Promise<boolean>): void {
    this.#flushes++;
    void waiting.then(() => this.#flushes--);
    this.#pump();
  }

  /** Starts as many requests as may be under way; a batch that is not full first waits for the linger. */
  #pump(): void {
    if (this.#halted) return;
    const { concurrency, lingerMs } = this.#deps.settings;
    while (this.#running.size < concurrency && !this.#queue.empty) {
      if (!this.#queue.full && !this.#lingered && this.#flushes === 0) break;
      const writes = this.#queue.compose();
      if (writes.length > 0) this.#start(writes);
    }
    if (this.#queue.empty) {
      this.#lingered = false;
      this.#cancelLinger?.();
      this.#cancelLinger = undefined;
    } else if (!this.#lingered) {
      this.#cancelLinger ??= this.#deps.clock.after(lingerMs, () => {
        this.#cancelLinger = undefined;
        this.#lingered = true;
        this.#pump();
      });
    }
  }

  #start(writes: readonly Write[]): void {
    // Nothing in here rejects for what DynamoDB or a listener does. What is left would be a mistake of the writer itself,
    // and then the process must fall rather than go on with rows that nobody writes.
    const run = this.#deliver(writes).then(() => {
      this.#queue.delivered(writes);
      this.#running.delete(run);
      this.#pump();
    });
    this.#running.add(run);
  }

  /** Ends when each of the writes is settled or back in the queue. An outage is waited for here, in the request's place. */
  async #deliver(batch: readonly Write[]): Promise<void> {
    for (let attempt = 0; !this.#halted; attempt++) {
      // Parts of a message that was refused meanwhile are not worth writing, and its payload is gone.
      const writes = batch.filter(({ entry }) => !entry.settled);
      if (writes.length === 0) return;
      const outcome = await this.#send(writes);
      switch (outcome.kind) {
        case "answered":
          this.#answered(outcome.stored, outcome.left);
          return;
        case "throttled":
          this.#answered([], writes);
          return;
        case "refused":
          await this.#narrowDown(writes, outcome.problem);
          return;
        case "unknown": {
          this.#deps.metrics.count("MessageWriteRetries", writes.length);
          const delayMs = fullJitter(RETRY_BASE_MS, RETRY_CAP_MS, attempt, this.#deps.random);
          const fields = { ...errorFields(outcome.error), items: writes.length, attempt, delayMs };
          this.#deps.logger.warn(fields, "message batch not stored, will be sent again");
          await sleep(this.#deps.clock, delayMs, this.#halt.signal);
        }
      }
    }
  }

  async #send(writes: readonly Write[]): ReturnType<typeof sendBatch> {
    const { client, tableName, settings } = this.#deps;
    // One controller per request: the SDK need not drop its listeners from a signal that lives as long as the writer.
    const request = new AbortController();
    this.#requests.add(request);
    try {
      return await sendBatch({ client, tableName, ttlSeconds: settings.ttlSeconds }, writes, request.signal);
    } finally {
      this.#requests.delete(request);
    }
  }

  /** One bad item makes DynamoDB refuse the whole batch: the halves are sent by themselves until it stands alone. */
  async #narrowDown(writes: readonly Write[], problem: string): Promise<void> {
    const [only] = writes;
    if (writes.length === 1 && only !== undefined) {
      this.#refused(only.entry, problem);
      return;
    }
    const middle = writes.length >> 1;
    await this.#deliver(writes.slice(0, middle));
    await this.#deliver(writes.slice(middle));
  }

  #answered(stored: readonly Write[], left: readonly Write[]): void {
    let rows = 0;
    for (const write of stored) if (this.#stored(write)) rows++;
    if (rows > 0) this.#deps.metrics.count("MessagesStored", rows);
    if (left.length > 0) {
      this.#deps.metrics.count("MessageWriteRetries", left.length);
      this.#deps.logger.debug({ items: left.length }, "message writes left unprocessed, will be sent again");
      this.#queue.putBack(left);
    }
  }

  /** Whether a row became durable with it. */
  #stored({ entry, part }: Write): boolean {
    const { lane, large } = entry;
    this.#queue.progressed(lane.queue);
    if (entry.settled) return false;
    if (part > 0) {
      entry.storedParts++;
      // The head says that the message is whole, so it is written when that is true.
      if (large?.complete === true && entry.storedParts === large.count) {
        this.#queue.addAgain(lane.queue, headWrite(entry));
      }
      return false;
    }
    entry.settle("durable");
    lane.stored(entry);
    this.#settled(entry, true);
    return true;
  }

  #refused(entry: Entry, problem: string): void {
    if (entry.settled) return;
    const { lane } = entry;
    this.#deps.metrics.count("MessagesRefused");
    this.#deps.logger.error({ item: entry.key, bytes: entry.bytes, problem }, "DynamoDB refuses a message for good");
    entry.settle("refused");
    this.#queue.abandon(lane.queue, entry);
    lane.refused(entry, problem);
    this.#settled(entry, false);
  }

  #settled(entry: Entry, durable: boolean): void {
    const { lane } = entry;
    if (lane.pendingItems === 0) this.#busy.delete(lane);
    this.#queue.settled(entry);
    this.#gate.settle(entry.ticket, durable);
    this.#pushedMs.delete(entry.ticket);
    this.#pressure.removed(lane, entry.bytes);
  }
}
