import { encodeHint, type Hint } from "../../shared/hints/hint.ts";
import type { CallOptions } from "../../shared/lease/index.ts";
import { MAX_BATCH_ENTRIES, type HintQueue } from "./hint-queue.ts";

export interface SentHints {
  readonly sent: readonly Hint[];
  /** Refused twice, or not tried any more. */
  readonly unsent: readonly Hint[];
  /** Why the last call that failed as a whole did so; undefined when none did. */
  readonly error: unknown;
}

/**
 * Sends hints in full batches, `inFlight` of them at once, in the order given. What is refused is sent once more; a call
 * that fails as a whole twice ends the sending, since the queue cannot be reached and each further try would cost its
 * whole timeout.
 */
export async function sendHints(
  queue: HintQueue,
  hints: readonly Hint[],
  inFlight: number,
  options?: CallOptions,
): Promise<SentHints> {
  const sent: Hint[] = [];
  const unsent: Hint[] = [];
  let error: unknown;
  let next = 0;
  let givenUp = false;

  const sendOnce = async (batch: readonly Hint[]): Promise<{ refused: readonly Hint[]; failed: boolean }> => {
    try {
      const refused = new Set(await queue.sendBatch(batch.map(encodeHint), options));
      sent.push(...batch.filter((_, i) => !refused.has(i)));
      return { refused: batch.filter((_, i) => refused.has(i)), failed: false };
    } catch (cause) {
      error = cause;
      return { refused: batch, failed: true };
    }
  };
  const sendTwice = async (batch: readonly Hint[]): Promise<void> => {
    const first = await sendOnce(batch);
    if (first.refused.length === 0) return;
    const second = await sendOnce(first.refused);
    unsent.push(...second.refused);
    if (second.failed) givenUp = true;
  };
  const line = async (): Promise<void> => {
    while (next < hints.length && !givenUp && options?.signal?.aborted !== true) {
      const batch = hints.slice(next, next + MAX_BATCH_ENTRIES);
      next += batch.length;
      await sendTwice(batch);
    }
  };

  await Promise.all(Array.from({ length: inFlight }, line));
  unsent.push(...hints.slice(next));
  return { sent, unsent, error };
}
