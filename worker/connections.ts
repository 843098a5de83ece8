import type { Connection, ConnectionState } from "./connection/connection.ts";

/** What this worker has in its hands: held connections, and ids with an acquire under way. */
export class Connections {
  readonly #held = new Map<string, Connection>();
  readonly #acquiring = new Set<string>();
  readonly #maxConnections: number;
  readonly #freed = new Set<() => void>();

  constructor(maxConnections: number) {
    this.#maxConnections = maxConnections;
  }

  /** Places for further connections. Acquires under way count: at the cap nothing more is asked for. */
  freeSlots(): number {
    return Math.max(0, this.#maxConnections - this.#held.size - this.#acquiring.size);
  }

  /** Held connections, whatever their socket does: what the service scales on. */
  get size(): number {
    return this.#held.size;
  }

  get acquiring(): number {
    return this.#acquiring.size;
  }

  openSockets(): number {
    let open = 0;
    for (const connection of this.#held.values()) if (connection.open) open++;
    return open;
  }

  get(connectionId: string): Connection | undefined {
    return this.#held.get(connectionId);
  }

  all(): readonly Connection[] {
    return [...this.#held.values()];
  }

  countByState(): Partial<Record<ConnectionState, number>> {
    const counts: Partial<Record<ConnectionState, number>> = {};
    for (const { state } of this.#held.values()) counts[state] = (counts[state] ?? 0) + 1;
    return counts;
  }

  /**
   * `known`: the id is held or being acquired already, and there is one lease operation per connection at a time. `full`:
   * the cap is reached, though there was a slot when the id was asked for.
   */
  beginAcquire(connectionId: string): "begun" | "known" | "full" {
    if (this.#held.has(connectionId) || this.#acquiring.has(connectionId)) return "known";
    if (this.freeSlots() === 0) return "full";
    this.#acquiring.add(connectionId);
    return "begun";
  }

  /** Ends what {@link beginAcquire} began. A connection stays until its end is settled with the store. */
  endAcquire(connectionId: string, connection?: Connection): void {
    this.#acquiring.delete(connectionId);
    if (connection === undefined) {
      this.#notifyFreed();
      return;
    }
    this.#held.set(connectionId, connection);
    void connection.ended.then(() => {
      if (this.#held.get(connectionId) === connection) this.#held.delete(connectionId);
      this.#notifyFreed();
    });
  }

  /** Calls `listener` whenever a slot may have become free; the result ends that. */
  onFreed(listener: () => void): () => void {
    this.#freed.add(listener);
    return () => this.#freed.delete(listener);
  }

  #notifyFreed(): void {
    for (const listener of this.#freed) listener();
  }
}
