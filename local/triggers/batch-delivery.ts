import { sleep, type Clock } from "../../shared/clock.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import type { StreamTrigger } from "../serverless/functions.ts";
import { resumeIndex } from "./batch-response.ts";
import type { StreamRecord } from "./stream-client.ts";

/** Why records were given up, as Lambda's on-failure records name it. */
export type GiveUpCondition = "RetryAttemptsExhausted" | "RecordAgeExceeded";

export interface GivenUp {
  readonly condition: GiveUpCondition;
  readonly records: readonly StreamRecord[];
  readonly invokeCount: number;
}

export interface DeliveryStats {
  invocations: number;
  failedInvocations: number;
  /** Records that the function said, or by its answer implied, to have handled. */
  recordsDone: number;
  recordsGivenUp: number;
}

export interface DeliveryDeps {
  readonly trigger: Pick<
    StreamTrigger,
    "reportBatchItemFailures" | "bisectBatchOnFunctionError" | "maximumRetryAttempts" | "maximumRecordAgeMs"
  >;
  readonly invoke: (event: { Records: readonly StreamRecord[] }) => Promise<unknown>;
  readonly giveUp: (given: GivenUp) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly stats: DeliveryStats;
}

/** A part of the batch that is delivered as one, and how often that has failed. */
interface Segment {
  readonly records: readonly StreamRecord[];
  readonly failures: number;
}

const RETRY_BASE_MS = 100;
const RETRY_CAP_MS = 10_000;

/**
 * Delivers a batch of one shard as Lambda's event source mapping does, and resolves when each record is done or given up,
 * or when the signal aborts. Order within the shard is kept: nothing overtakes a record that is being retried.
 *
 * A reported failure inside the batch moves the checkpoint there; an error, or a failure of the very first record, halves
 * the batch where bisecting is on. Neither split counts as a retry, so that a record that cannot be handled ends up alone
 * before it is given up, and takes no other with it.
 */
export async function deliverBatch(
  deps: DeliveryDeps,
  batch: readonly StreamRecord[],
  signal: AbortSignal,
): Promise<void> {
  const { trigger, clock, stats } = deps;
  const pending: Segment[] = [{ records: batch, failures: 0 }];
  let failuresInARow = 0;
  for (let segment = pending.shift(); segment !== undefined && !signal.aborted; segment = pending.shift()) {
    const records = await withoutExpired(deps, segment);
    if (records.length === 0) continue;
    const resumeAt = await attempt(deps, records);
    if (aborted(signal)) return;
    stats.recordsDone += resumeAt;
    if (resumeAt === records.length) {
      failuresInARow = 0;
      continue;
    }
    const remaining = records.slice(resumeAt);
    if (resumeAt > 0) {
      pending.unshift({ records: remaining, failures: 0 });
    } else if (trigger.bisectBatchOnFunctionError && remaining.length > 1) {
      const middle = Math.ceil(remaining.length / 2);
      const { failures } = segment;
      pending.unshift(
        { records: remaining.slice(0, middle), failures },
        { records: remaining.slice(middle), failures },
      );
    } else if (segment.failures >= trigger.maximumRetryAttempts) {
      await giveUp(deps, {
        condition: "RetryAttemptsExhausted",
        records: remaining,
        invokeCount: segment.failures + 1,
      });
      failuresInARow = 0;
      continue;
    } else {
      pending.unshift({ records: remaining, failures: segment.failures + 1 });
    }
    failuresInARow++;
    await sleep(clock, Math.min(RETRY_BASE_MS * 2 ** (failuresInARow - 1), RETRY_CAP_MS), signal);
  }
}

/** A function, because the state of a signal changes during an await and the compiler does not know. */
function aborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

/** The index of the first record that is not done; the length when all are. */
async function attempt(deps: DeliveryDeps, records: readonly StreamRecord[]): Promise<number> {
  const { trigger, stats, logger } = deps;
  stats.invocations++;
  try {
    const answer = await deps.invoke({ Records: records });
    if (!trigger.reportBatchItemFailures) return records.length;
    const resumeAt = resumeIndex(
      answer,
      records.map((record) => record.dynamodb.SequenceNumber),
    );
    if (resumeAt < records.length) {
      stats.failedInvocations++;
      logger.info({ records: records.length, resumeAt }, "function reported failed stream records");
    }
    return resumeAt;
  } catch (error) {
    stats.failedInvocations++;
    logger.warn({ records: records.length, ...errorFields(error) }, "function failed on stream records");
    return 0;
  }
}

async function withoutExpired(deps: DeliveryDeps, segment: Segment): Promise<readonly StreamRecord[]> {
  const oldestMs = deps.clock.wallMs() - deps.trigger.maximumRecordAgeMs;
  const expired = segment.records.filter((record) => createdAtMs(record) < oldestMs);
  if (expired.length === 0) return segment.records;
  await giveUp(deps, { condition: "RecordAgeExceeded", records: expired, invokeCount: segment.failures });
  return segment.records.filter((record) => createdAtMs(record) >= oldestMs);
}

/** The end of the second that the stream names, since it rounds down: no record is taken for older than it is. */
function createdAtMs(record: StreamRecord): number {
  const seconds = record.dynamodb.ApproximateCreationDateTime;
  return seconds === undefined ? Infinity : (Math.floor(seconds) + 1) * 1000;
}

async function giveUp(deps: DeliveryDeps, given: GivenUp): Promise<void> {
  deps.stats.recordsGivenUp += given.records.length;
  deps.logger.error({ condition: given.condition, records: given.records.length }, "stream records are given up");
  try {
    await deps.giveUp(given);
  } catch (error) {
    // As on AWS: a destination that cannot be reached does not hold up the shard.
    deps.logger.error(errorFields(error), "the on-failure destination could not be reached");
  }
}
