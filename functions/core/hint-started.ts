import type { CallOptions } from "../../shared/lease/index.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import { BoundedLog } from "./bounded-log.ts";
import type { HintQueue } from "./hint-queue.ts";
import { sendHints } from "./send-hints.ts";
import { judgeRecord } from "./started-record.ts";

export interface HintStartedDeps {
  readonly queue: HintQueue;
  /** Wall time, ms. */
  readonly nowMs: () => number;
  readonly logger: Logger;
}

export interface HintStartedResult {
  readonly hinted: number;
  readonly skipped: number;
  readonly malformed: number;
  /** Sequence numbers, of this batch only, whose hint could not be sent: a foreign one would repeat the whole batch. */
  readonly failed: readonly string[];
}

/** Batches under way at once. */
const IN_FLIGHT = 4;

/**
 * Hints each connection of a stream batch that became startable, once. A record of another shape is logged and passed
 * over, since no retry would change it and it must not block its shard; the sweep finds what it stood for.
 */
export async function hintStarted(
  { queue, nowMs, logger }: HintStartedDeps,
  records: readonly unknown[],
  options?: CallOptions,
): Promise<HintStartedResult> {
  const sequenceNumbers = new Map<string, string[]>();
  const malformed = new BoundedLog(logger);
  let skipped = 0;
  for (const [index, record] of records.entries()) {
    const verdict = judgeRecord(record);
    if (verdict.kind === "malformed") malformed.warn({ index, problem: verdict.problem }, "stream record skipped");
    else if (verdict.kind === "other") skipped++;
    else {
      const numbers = sequenceNumbers.get(verdict.connectionId);
      if (numbers === undefined) sequenceNumbers.set(verdict.connectionId, [verdict.sequenceNumber]);
      else numbers.push(verdict.sequenceNumber);
    }
  }
  malformed.close("more stream records skipped");

  const hintedAtMs = Math.floor(nowMs());
  const hints = [...sequenceNumbers.keys()].map((connectionId) => ({
    connectionId,
    reason: "started" as const,
    hintedAtMs,
  }));
  const { sent, unsent, error } = await sendHints(queue, hints, IN_FLIGHT, options);
  const failed = unsent.flatMap(({ connectionId }) => sequenceNumbers.get(connectionId) ?? []);
  const counts = { hinted: sent.length, skipped, malformed: malformed.count, failed: failed.length };
  if (failed.length > 0) {
    logger.error({ ...counts, ...(error === undefined ? {} : errorFields(error)) }, "hints could not be sent");
  } else logger.info(counts, "started connections hinted");
  return { ...counts, failed };
}
