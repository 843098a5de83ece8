/**
 * When each orphan was last hinted, so that sweeps do not repeat themselves. It lives as long as the function's process:
 * losing it costs hints that were sent already, and never a connection.
 */
export class RecentHints {
  readonly #rehintMs: number;
  readonly #maxEntries: number;
  readonly #hintedAtMs = new Map<string, number>();

  /**
   * @param rehintMs a connection is hinted again no sooner than this after its last hint
   * @param maxEntries the oldest entries are forgotten beyond it
   */
  constructor(rehintMs: number, maxEntries: number) {
    this.#rehintMs = rehintMs;
    this.#maxEntries = maxEntries;
  }

  get size(): number {
    return this.#hintedAtMs.size;
  }

  mayHint(connectionId: string, nowMs: number): boolean {
    const hintedAtMs = this.#hintedAtMs.get(connectionId);
    return hintedAtMs === undefined || this.#isOver(hintedAtMs, nowMs);
  }

  note(connectionId: string, hintedAtMs: number): void {
    // Set anew, so that the map's order stays that of the hints.
    this.#hintedAtMs.delete(connectionId);
    this.#hintedAtMs.set(connectionId, hintedAtMs);
    for (const oldest of this.#hintedAtMs.keys()) {
      if (this.#hintedAtMs.size <= this.#maxEntries) break;
      this.#hintedAtMs.delete(oldest);
    }
  }

  /** Forgets what no longer matters. */
  prune(nowMs: number): void {
    for (const [connectionId, hintedAtMs] of this.#hintedAtMs) {
      if (this.#isOver(hintedAtMs, nowMs)) this.#hintedAtMs.delete(connectionId);
    }
  }

  /** A time in the future is from before a step of the clock; it must not silence a connection until then. */
  #isOver(hintedAtMs: number, nowMs: number): boolean {
    return hintedAtMs > nowMs || nowMs - hintedAtMs >= this.#rehintMs;
  }
}
