import type { History } from "../engine/history.ts";
import type { Scheduler } from "../engine/scheduler.ts";

/** The invariants of docs/invariants.md, and what follows from them at a single step. */
export type Rule =
  | "one-actor"
  | "taken-while-acting"
  | "acts-outside-lease"
  | "deadline-too-late"
  | "epoch-falls"
  | "last-seq-falls"
  | "expiry-falls"
  | "epoch-not-raised"
  | "unconditional-write"
  | "creates-item"
  | "stale-write-applied"
  | "stops-without-reason"
  | "checkpoint-past-gap"
  | "row-without-receipt"
  | "stream-differs"
  | "message-lost"
  | "not-streaming"
  | "socket-of-stopped"
  | "unbounded-memory"
  | "unexpected-error";

export interface Violation {
  readonly rule: Rule;
  readonly atMs: number;
  readonly connectionId: string | undefined;
  readonly text: string;
}

/** Collected, never thrown: production code under test must not be able to swallow one. */
export class Violations {
  readonly #scheduler: Scheduler;
  readonly #history: History;
  readonly #found: Violation[] = [];

  constructor(scheduler: Scheduler, history: History) {
    this.#scheduler = scheduler;
    this.#history = history;
  }

  get first(): Violation | undefined {
    return this.#found[0];
  }

  report(rule: Rule, connectionId: string | undefined, text: string): void {
    if (this.#found.length >= 10) return;
    this.#found.push({ rule, atMs: this.#scheduler.nowMs, connectionId, text });
    this.#history.add("CHECKER", connectionId, `*** ${rule}: ${text}`);
  }
}
