/**
 * Since when released connections wait for an owner. The index cannot say: a released item has the expiry 0, whenever
 * that was. So the first sight counts, and the age is a lower bound; after a cold start it begins anew.
 */
export class FreeSince {
  readonly #maxEntries: number;
  #firstSeenMs = new Map<string, number>();
  #seenNow = new Map<string, number>();

  /** @param maxEntries further connections are not followed while there are so many. */
  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  get size(): number {
    return this.#firstSeenMs.size;
  }

  /** Milliseconds since the connection was first seen free in an unbroken run of rounds. */
  ageMs(connectionId: string, nowMs: number): number {
    const firstSeenMs = Math.min(this.#firstSeenMs.get(connectionId) ?? nowMs, nowMs);
    if (this.#seenNow.size < this.#maxEntries) this.#seenNow.set(connectionId, firstSeenMs);
    return nowMs - firstSeenMs;
  }

  /** Ends a round over all connections: those not seen in it were taken, and count from zero when seen again. */
  endRound(): void {
    this.#firstSeenMs = this.#seenNow;
    this.#seenNow = new Map();
  }

  /** Ends a round that did not get to see all: what is known stays. */
  dropRound(): void {
    this.#seenNow = new Map();
  }
}
