import { ExpiredIteratorException } from "@aws-sdk/client-dynamodb-streams";
import { sleep, type Clock } from "../../shared/clock.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import type { StreamTrigger } from "../serverless/functions.ts";
import { deliverBatch, type DeliveryStats, type GivenUp } from "./batch-delivery.ts";
import { compileAlternatives, type Matcher } from "./filter-pattern.ts";
import type { Shard, StartAt, StreamClient, StreamRecord } from "./stream-client.ts";

export interface StreamPumpStats extends DeliveryStats {
  recordsRead: number;
  /** Records that a filter pattern let through. */
  recordsMatched: number;
}

export interface StreamPumpOptions {
  readonly client: Pick<StreamClient, "shards" | "iterator" | "records">;
  readonly streamArn: string;
  readonly trigger: StreamTrigger;
  readonly invoke: (event: { Records: readonly StreamRecord[] }) => Promise<unknown>;
  /** Takes the records that were given up, with the shard they come from. */
  readonly onGivenUp: (given: GivenUp, shardId: string) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How often a shard without news is asked. Lambda asks 4 times a second. */
  readonly pollMs?: number;
}

export interface StreamPump {
  readonly stats: Readonly<StreamPumpStats>;
  /** Ends reading; an invocation that runs is not waited for. */
  stop(): Promise<void>;
}

const DEFAULT_POLL_MS = 100;
/** How often new shards are looked for. Listing them is dear on the embedded server, which never has a second one. */
const DISCOVERY_MS = 5_000;
const ERROR_PAUSE_MS = 500;
/** GetRecords gives at most 1,000. */
const READ_LIMIT = 1_000;

/**
 * Reads a table's stream and invokes a function with what the filter patterns let through, as an event source mapping does.
 * Resolves once it is set on its starting position: with LATEST, every later write is seen.
 */
export async function startStreamPump(options: StreamPumpOptions): Promise<StreamPump> {
  const { client, streamArn, trigger, clock, logger } = options;
  const abort = new AbortController();
  const stats: StreamPumpStats = {
    recordsRead: 0,
    recordsMatched: 0,
    invocations: 0,
    failedInvocations: 0,
    recordsDone: 0,
    recordsGivenUp: 0,
  };
  const matches = compileAlternatives(trigger.filterPatterns, { at: "filterPatterns", numbersAreText: true });
  const context: ReaderContext = { options, stats, matches, signal: abort.signal };
  const readers = new Map<string, Promise<void>>();

  for (const shard of await client.shards(streamArn)) {
    const start: StartAt = { type: trigger.startingPosition };
    const iterator = await client.iterator(streamArn, shard.shardId, start);
    readers.set(shard.shardId, readShard(context, shard, start, iterator));
  }

  /** A shard that appears later continues an older one: it is read from its beginning, after its parent. */
  const discover = async (): Promise<void> => {
    while (!abort.signal.aborted) {
      await sleep(clock, DISCOVERY_MS, abort.signal);
      if (aborted(abort.signal)) return;
      try {
        for (const shard of await client.shards(streamArn)) {
          if (readers.has(shard.shardId)) continue;
          const parent = readers.get(shard.parentShardId ?? "") ?? Promise.resolve();
          readers.set(
            shard.shardId,
            parent.then(() => readShard(context, shard, { type: "TRIM_HORIZON" }, undefined)),
          );
        }
      } catch (error) {
        if (!aborted(abort.signal)) logger.warn(errorFields(error), "the stream's shards could not be listed");
      }
    }
  };
  const discovery = discover();

  return {
    stats,
    stop: async () => {
      abort.abort();
      await Promise.all([discovery, ...readers.values()]);
    },
  };
}

interface ReaderContext {
  readonly options: StreamPumpOptions;
  readonly stats: StreamPumpStats;
  readonly matches: Matcher;
  readonly signal: AbortSignal;
}

async function readShard(
  context: ReaderContext,
  shard: Shard,
  start: StartAt,
  firstIterator: string | undefined,
): Promise<void> {
  const { client, streamArn, clock, logger, pollMs = DEFAULT_POLL_MS } = context.options;
  let position = start;
  let iterator = firstIterator;
  while (!context.signal.aborted) {
    try {
      iterator ??= await client.iterator(streamArn, shard.shardId, position);
      const { records, next } = await client.records(iterator, READ_LIMIT);
      await deliver(context, shard, records);
      const last = records.at(-1);
      if (last !== undefined)
        position = { type: "AFTER_SEQUENCE_NUMBER", sequenceNumber: last.dynamodb.SequenceNumber };
      if (next === undefined) return;
      iterator = next;
      if (records.length < READ_LIMIT) await sleep(clock, pollMs, context.signal);
    } catch (error) {
      if (aborted(context.signal)) return;
      logger.warn({ shardId: shard.shardId, ...errorFields(error) }, "the stream could not be read");
      // Any other failure leaves the iterator valid, and with LATEST a new one would skip what was written meanwhile.
      if (error instanceof ExpiredIteratorException) iterator = undefined;
      await sleep(clock, ERROR_PAUSE_MS, context.signal);
    }
  }
}

async function deliver(context: ReaderContext, shard: Shard, records: readonly StreamRecord[]): Promise<void> {
  const { options, stats, signal } = context;
  const { trigger, clock, logger } = options;
  stats.recordsRead += records.length;
  const matched = records.filter((record) => context.matches(record));
  stats.recordsMatched += matched.length;
  const deps = {
    trigger,
    clock,
    logger,
    stats,
    invoke: (event: { Records: readonly StreamRecord[] }) => unlessAborted(options.invoke(event), signal),
    giveUp: (given: GivenUp) => options.onGivenUp(given, shard.shardId),
  };
  for (let i = 0; i < matched.length && !signal.aborted; i += trigger.batchSize) {
    await deliverBatch(deps, matched.slice(i, i + trigger.batchSize), signal);
  }
}

/** A function, because the state of a signal changes during an await and the compiler does not know. */
function aborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

/** `promise`, or undefined as soon as the signal aborts: nobody waits for the answer then. */
function unlessAborted(promise: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(undefined);
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
