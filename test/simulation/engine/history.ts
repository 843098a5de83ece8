import type { Scheduler } from "./scheduler.ts";

export interface HistoryEntry {
  readonly atMs: number;
  readonly actor: string;
  /** The connection it is about; undefined: about all of them. */
  readonly connectionId: string | undefined;
  readonly text: string;
}

/** What happened, for people who look at a failing seed. */
export class History {
  readonly #scheduler: Scheduler;
  readonly #entries: HistoryEntry[] = [];

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  add(actor: string, connectionId: string | undefined, text: string): void {
    this.#entries.push({ atMs: this.#scheduler.nowMs, actor, connectionId, text });
  }

  /** The last `count` lines about a connection, with the faults of everything around it. */
  lines(connectionId: string | undefined, count: number): string[] {
    return this.#entries
      .filter((entry) => connectionId === undefined || (entry.connectionId ?? connectionId) === connectionId)
      .slice(-count)
      .map(
        ({ atMs, actor, connectionId: id, text }) =>
          `${(atMs / 1000).toFixed(3).padStart(9)} s  ${actor.padEnd(10)} ${(id ?? "").padEnd(4)} ${text}`,
      );
  }
}
