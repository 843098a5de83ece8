import { sleep, type Clock } from "../../shared/clock.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import { withTimeLimit, type Invocation } from "./time-limit.ts";

export interface RoundsDeps extends Invocation {
  readonly logger: Logger;
}

export interface RoundsRequest {
  /** What one round is called in logs and errors. */
  readonly name: string;
  readonly everyMs: number;
}

export interface RoundsResult {
  readonly ran: number;
  readonly failed: number;
}

/** The smallest interval of a schedule; the next invocation takes over after it. */
const SCHEDULE_MS = 60_000;
/** A round is not begun with less than this left: it would be killed in the middle. */
const LEAST_ROUND_MS = 3_000;

/**
 * Runs a round at once and then every `everyMs`, until the next scheduled invocation is due or the time of this one runs
 * short. Rounds never overlap, and never start closer together than `everyMs`. One that fails is logged; the next comes.
 *
 * @param round gets a signal that aborts shortly before this invocation would be killed
 * @throws when no round succeeded: only an error of the function itself reaches its alarm.
 */
export async function runRounds(
  deps: RoundsDeps,
  request: RoundsRequest,
  round: (signal: AbortSignal) => Promise<unknown>,
): Promise<RoundsResult> {
  const { clock, logger } = deps;
  const endMs = clock.monotonicMs() + SCHEDULE_MS;
  let ran = 0;
  let failed = 0;
  let lastError: unknown;
  for (let dueMs = clock.monotonicMs(); dueMs < endMs;) {
    const waitMs = Math.max(0, dueMs - clock.monotonicMs());
    if (deps.remainingMs() - waitMs < LEAST_ROUND_MS) break;
    await waitUntil(clock, dueMs);
    ran++;
    try {
      const running = withTimeLimit(deps, round);
      // Read after the round read its own time, so that the times two rounds read are at least the interval apart.
      dueMs = clock.monotonicMs() + request.everyMs;
      await running;
    } catch (error) {
      failed++;
      lastError = error;
      logger.error({ round: ran, failed, ...errorFields(error) }, `${request.name} failed`);
    }
  }
  if (ran === 0) throw new Error(`no time for a ${request.name}: ${deps.remainingMs()} ms are left`);
  if (failed === ran) {
    throw new Error(`every ${request.name} of this invocation failed (${failed})`, { cause: lastError });
  }
  return { ran, failed };
}

/** Timers may fire a fraction of a millisecond early. */
async function waitUntil(clock: Clock, dueMs: number): Promise<void> {
  for (let waitMs = dueMs - clock.monotonicMs(); waitMs > 0; waitMs = dueMs - clock.monotonicMs()) {
    await sleep(clock, Math.ceil(waitMs));
  }
}
