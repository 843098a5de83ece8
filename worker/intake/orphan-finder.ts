import type { AnchoredClock, Cancel, Clock } from "../../shared/clock.ts";
import type { LeaseTable } from "../../shared/lease/index.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import { queryOrphans, type Orphan } from "../../shared/orphans.ts";
import { jittered, shuffled, type Random } from "../../shared/random.ts";
import { sleep } from "../../shared/clock.ts";
import type { Connections } from "../connections.ts";
import type { Acquirer } from "./acquirer.ts";
import type { TokenBucket } from "../token-bucket.ts";

export interface OrphanFinderDeps {
  readonly table: LeaseTable;
  readonly acquirer: Acquirer;
  readonly connections: Connections;
  readonly tokens: TokenBucket;
  readonly clock: Clock;
  readonly anchored: AnchoredClock;
  readonly random: Random;
  readonly logger: Logger;
  readonly settings: { readonly quietQueueMs: number; readonly skewMs: number };
}

/** While orphans keep being found, the next look comes after this share of the quiet time. */
const BUSY_SHARE = 0.1;
/** Rows looked at per free slot: workers that look at the same time shuffle, and so rarely want the same ones. */
const ROWS_PER_SLOT = 4;
const MAX_ROWS = 4000;
/** Longer than several looks; shorter than the promise that an orphan is found again would bear if it was our mistake. */
const FRUITLESS_MS = 120_000;
const MAX_FRUITLESS = 10_000;

/**
 * The way out when queue or functions are broken: a worker with free slots that has had no hint for a while runs the
 * orphan query by itself. As with a hint, only the acquire decides.
 */
export class OrphanFinder {
  readonly #deps: OrphanFinderDeps;
  readonly #abort = new AbortController();
  #cancel: Cancel | undefined;
  #looking: Promise<void> | undefined;
  #lastLookMs: number;
  /** Rows whose base item could not be taken, with the time until which they are passed over (monotonic ms). */
  readonly #fruitless = new Map<string, number>();

  constructor(deps: OrphanFinderDeps) {
    this.#deps = deps;
    this.#lastLookMs = deps.clock.monotonicMs();
  }

  start(): void {
    this.#rest(1);
  }

  /**
   * A hint of the sweep came: sweep and queue are alive, the quiet time starts anew. Not for ever, since one hint does not
   * prove that all orphans are hinted.
   */
  onSweepHint(): void {
    const { clock, settings } = this.#deps;
    const overdue = clock.monotonicMs() - this.#lastLookMs > 2 * settings.quietQueueMs;
    if (this.#looking === undefined && !overdue) this.#rest(1);
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    this.#cancel?.();
    await this.#looking;
  }

  #rest(share: number): void {
    if (this.#abort.signal.aborted) return;
    this.#cancel?.();
    const { clock, random, settings } = this.#deps;
    this.#cancel = clock.after(jittered(settings.quietQueueMs * share, 0.2, random), () => {
      this.#looking = this.#look()
        .catch((error: unknown) => {
          this.#deps.logger.warn(errorFields(error), "the worker's own orphan query failed");
          return 0;
        })
        .then((found) => {
          this.#looking = undefined;
          this.#rest(found > 0 ? BUSY_SHARE : 1);
        });
    });
  }

  async #look(): Promise<number> {
    const { anchored, clock, connections, logger, random, settings, table, tokens } = this.#deps;
    this.#lastLookMs = clock.monotonicMs();
    const free = connections.freeSlots();
    if (free === 0) return 0;
    this.#forgetFruitless();
    const orphans: Orphan[] = [];
    const limit = Math.min(MAX_ROWS, free * ROWS_PER_SLOT);
    const query = { nowMs: anchored.nowMs(), skewMs: settings.skewMs };
    for await (const orphan of queryOrphans(table, query, { signal: this.#abort.signal })) {
      // Items that nobody can take stay the oldest for ever: they must not hide the others.
      if (this.#fruitless.has(orphan.connectionId)) continue;
      orphans.push(orphan);
      if (orphans.length >= limit) break;
    }
    if (orphans.length > 0) {
      logger.info({ orphans: orphans.length, free_slots: free }, "no hints for a while: orphans found by own query");
    }
    const acquires: Promise<unknown>[] = [];
    for (const orphan of shuffled(orphans, random)) {
      while (tokens.available() < 1 && !this.#abort.signal.aborted) {
        await sleep(clock, Math.max(5, tokens.waitMs()), this.#abort.signal);
      }
      if (this.#abort.signal.aborted || connections.freeSlots() === 0) break;
      tokens.take(1);
      const since = orphan.expiredAtMs > 0 ? orphan.expiredAtMs : undefined;
      acquires.push(this.#try(orphan.connectionId, since));
    }
    await Promise.allSettled(acquires);
    return orphans.length;
  }

  async #try(connectionId: string, since: number | undefined): Promise<void> {
    const result = await this.#deps.acquirer.tryAcquire(connectionId, since);
    if (result === "settled" && this.#fruitless.size < MAX_FRUITLESS) {
      this.#fruitless.set(connectionId, this.#deps.clock.monotonicMs() + FRUITLESS_MS);
    }
  }

  #forgetFruitless(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    for (const [id, untilMs] of this.#fruitless) if (untilMs <= nowMs) this.#fruitless.delete(id);
  }
}
