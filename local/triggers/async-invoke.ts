import { sleep, type Clock } from "../../shared/clock.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";

/** Lambda's pauses before it repeats a failed asynchronous invocation. */
const RETRY_DELAYS_MS = [60_000, 120_000];

export interface AsyncInvokeDeps {
  readonly invoke: (functionName: string, event: unknown) => Promise<unknown>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends waiting for a repetition, and the reporting of failures. */
  readonly signal: AbortSignal;
}

/**
 * An invocation that nobody waits for an answer of: schedules and events. A failure is repeated `retryAttempts` times and
 * then dropped. Never rejects.
 */
export async function invokeAsync(
  deps: AsyncInvokeDeps,
  functionName: string,
  event: unknown,
  retryAttempts: number,
): Promise<void> {
  const { clock, logger, signal } = deps;
  for (let attempt = 0; !signal.aborted; attempt++) {
    try {
      await deps.invoke(functionName, event);
      return;
    } catch (error) {
      if (aborted(signal)) return;
      const delayMs = attempt < retryAttempts ? RETRY_DELAYS_MS[attempt] : undefined;
      logger.error({ functionName, attempt, retryInMs: delayMs ?? null, ...errorFields(error) }, "function failed");
      if (delayMs === undefined) return;
      await sleep(clock, delayMs, signal);
    }
  }
}

/** A function, because the state of a signal changes during an await and the compiler does not know. */
function aborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
