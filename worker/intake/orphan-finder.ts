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

/**
 * The way out when queue or functions are broken: a worker with free slots that has had no hint for a while runs the
 * orphan query by itself. As with a hint, only the acquire decides.
 */
export class OrphanFinder {
  readonly #deps: OrphanFinderDeps;
  readonly #abort = new AbortController();
  #cancel: Cancel | undefined;
  #looking: Promise<void> | undefined;

  constructor(deps: OrphanFinderDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#rest(1);
  }

  /** A hint came: the queue is alive, the quiet time starts anew. */
  onHint(): void {
    if (this.#looking === undefined) this.#rest(1);
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
    const free = connections.freeSlots();
    if (free === 0) return 0;
    const orphans: Orphan[] = [];
    const limit = Math.min(MAX_ROWS, free * ROWS_PER_SLOT);
    const query = { nowMs: anchored.nowMs(), skewMs: settings.skewMs };
    for await (const orphan of queryOrphans(table, query, { signal: this.#abort.signal })) {
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
      acquires.push(this.#deps.acquirer.tryAcquire(orphan.connectionId, since));
    }
    await Promise.allSettled(acquires);
    return orphans.length;
  }
}
