import type { ChildProcess } from "node:child_process";
import { sleep, type Clock } from "../../shared/clock.ts";
import { releaseOf, type LeaseTable } from "../../shared/lease/index.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import { EXIT } from "../exit-codes.ts";

export interface SuperviseDeps {
  readonly task: string;
  readonly table: LeaseTable;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly settings: {
    readonly releasesPerSecond: number;
    readonly attempts: number;
    readonly stopTimeoutMs: number;
    readonly drainBudgetMs: number;
  };
  /** Where SIGTERM and SIGINT arrive. */
  readonly signals: NodeJS.EventEmitter;
  readonly spawn: () => ChildProcess;
}

/** Passes over the index after a death, ms since then: a write of the dead process may still arrive, the index lags. */
const PASSES_MS = [0, 1000, 3000];
/** Left for freeing leases between our SIGKILL to a stuck worker and the orchestrator's to us. */
const LAST_WORDS_MS = 4000;
/** The last line is written by then, whatever the store does. */
const RELEASE_LIMIT_MS = 10_000;

/**
 * Runs one worker and returns the exit code for the task.
 *
 * The child is proven dead when its exit was collected: it cannot act any more. Unless it drained everything itself,
 * its leases are freed at once. Killed at any line, this process loses nothing: the leases expire.
 */
export async function supervise(deps: SuperviseDeps): Promise<number> {
  const { clock, logger, settings, signals, task } = deps;
  const child = deps.spawn();
  const stop: { asked: boolean; cancelKill: () => void } = { asked: false, cancelKill: () => undefined };
  const forward = (signal: NodeJS.Signals): void => {
    logger.info({ signal }, "signal forwarded to the worker");
    child.kill(signal);
    if (stop.asked) return;
    stop.asked = true;
    // A worker that does not end by itself is killed while there is still time to free its leases.
    const patienceMs = Math.max(settings.drainBudgetMs, settings.stopTimeoutMs - LAST_WORDS_MS - 1000);
    stop.cancelKill = clock.after(patienceMs, () => {
      logger.error({}, "worker did not end in time: killed");
      child.kill("SIGKILL");
    });
  };
  signals.on("SIGTERM", forward);
  signals.on("SIGINT", forward);

  const { code, signal } = await exitOf(child);
  stop.cancelKill();
  if (code === EXIT.ok && stop.asked) return EXIT.ok;
  if (code === EXIT.configuration) return EXIT.configuration;
  logger.error({ code, signal }, "worker died: freeing its leases");
  await freeLeases(deps, task);
  return code ?? 128 + signalNumber(signal);
}

function exitOf(child: ChildProcess): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    // Also a signal that could not be sent is an error; only a child that never came to be is as good as dead.
    child.on("error", () => {
      if (child.pid === undefined) resolve({ code: EXIT.crashed, signal: null });
    });
  });
}

async function freeLeases({ clock, logger, settings, table }: SuperviseDeps, deadTask: string): Promise<void> {
  const abort = new AbortController();
  const cancel = clock.after(RELEASE_LIMIT_MS, () => abort.abort());
  const diedAtMs = clock.monotonicMs();
  for (const passMs of PASSES_MS) {
    await sleep(clock, passMs - (clock.monotonicMs() - diedAtMs), abort.signal);
    if (abort.signal.aborted) break;
    try {
      const result = await releaseOf(
        { table, clock },
        { deadTask, perSecond: settings.releasesPerSecond, attempts: settings.attempts },
        { signal: abort.signal },
      );
      logger.info({ ...result }, "leases of the dead worker freed");
    } catch (error) {
      logger.warn({ ...errorFields(error) }, "leases could not be read; they are tried again or expire");
    }
  }
  cancel();
}

/** As a shell tells it: 128 plus the signal's number. */
function signalNumber(signal: NodeJS.Signals | null): number {
  const numbers: Partial<Record<NodeJS.Signals, number>> = {
    SIGHUP: 1,
    SIGINT: 2,
    SIGABRT: 6,
    SIGKILL: 9,
    SIGSEGV: 11,
    SIGTERM: 15,
  };
  return signal === null ? EXIT.crashed : (numbers[signal] ?? 1);
}
