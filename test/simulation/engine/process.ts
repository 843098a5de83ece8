import type { Cancel, Clock } from "../../../shared/clock.ts";
import type { Machine } from "./machine.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Seeded } from "./seeded.ts";

/** What a process does towards the outside, one countable step each. */
export type StepKind = "request" | "delivery" | "timer" | "dial";

/** A fault that hits a process at one of its steps, before or after the step has its effect. */
export interface Trap {
  left: number;
  readonly when: "before" | "after";
  readonly spring: () => void;
}

/** How far from its due time a timer may fire: they have a grain, and event loops are late. */
const EARLIEST_MS = -0.5;
const LATEST_MS = 2;

/**
 * One operating-system process: it runs only when something is delivered to it or one of its timers fires. Frozen, it
 * does neither, and on thaw it sees what was delivered **before** its timers run, as an event loop does. Dead, nothing of
 * it has an effect any more, although what it sent before may still arrive elsewhere.
 */
export class SimProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly #scheduler: Scheduler;
  readonly #machine: Machine;
  readonly #seeded: Seeded;
  readonly #deathListeners: (() => void)[] = [];
  #state: "running" | "frozen" | "dead" = "running";
  #delivered: (() => void)[] = [];
  #departing: (() => void)[] = [];
  #overdue: (() => void)[] = [];
  #trap: Trap | undefined;

  constructor(name: string, scheduler: Scheduler, machine: Machine, seeded: Seeded) {
    this.name = name;
    this.#scheduler = scheduler;
    this.#machine = machine;
    this.#seeded = seeded;
    this.clock = {
      monotonicMs: () => machine.monotonicMs(),
      wallMs: () => machine.wallMs(),
      after: (delayMs, fn) => this.#after(delayMs, fn),
    };
  }

  get alive(): boolean {
    return this.#state !== "dead";
  }

  get frozen(): boolean {
    return this.#state === "frozen";
  }

  /** Something arrives from outside: handled now, at the thaw, or never. */
  deliver(fn: () => void): void {
    if (this.#state === "running") this.#step("delivery", fn);
    else if (this.#state === "frozen") this.#delivered.push(fn);
  }

  /** A request leaves. A process that is frozen at this very step sends it when it thaws; a dead one never. */
  depart(fn: () => void): void {
    if (this.#state === "dead") return;
    this.#step("request", () => {
      if (this.#state === "frozen") this.#departing.push(fn);
      else fn();
    });
  }

  /**
   * A dial leaves in the same instant in which the right to it was checked: a freeze between the two is the one gap that
   * no check can close.
   */
  dial(fn: () => void): void {
    if (this.#state !== "dead") this.#step("dial", fn);
  }

  /** Sets the fault that hits this process at its next steps. */
  setTrap(trap: Trap): void {
    this.#trap = trap;
  }

  freeze(): void {
    if (this.#state === "running") this.#state = "frozen";
  }

  thaw(): void {
    if (this.#state !== "frozen") return;
    this.#state = "running";
    const backlog = [
      ...this.#departing,
      ...this.#delivered.map((fn) => () => this.deliver(fn)),
      ...this.#overdue.map((fn) => () => this.#fire(fn)),
    ];
    this.#departing = [];
    this.#delivered = [];
    this.#overdue = [];
    // Events of their own, so that promise chains run between them; a new freeze may interrupt them.
    for (const fn of backlog) this.#scheduler.in(0, fn);
  }

  kill(): void {
    if (this.#state === "dead") return;
    this.#state = "dead";
    for (const listener of this.#deathListeners) listener();
  }

  onDeath(listener: () => void): void {
    this.#deathListeners.push(listener);
  }

  #after(delayMs: number, fn: () => void): Cancel {
    if (Number.isNaN(delayMs)) throw new Error("after: delayMs must be a number");
    let cancelled = false;
    const lateMs = this.#seeded.between(EARLIEST_MS, LATEST_MS);
    const cancelEvent = this.#scheduler.in(Math.max(0, delayMs) / this.#machine.rate + lateMs, () =>
      this.#fire(() => {
        if (!cancelled) fn();
      }),
    );
    return () => {
      cancelled = true;
      cancelEvent();
    };
  }

  #fire(fn: () => void): void {
    if (this.#state === "running") this.#step("timer", fn);
    else if (this.#state === "frozen") this.#overdue.push(fn);
  }

  #step(kind: StepKind, fn: () => void): void {
    const trap = this.#trap;
    if (trap === undefined || --trap.left > 0) {
      fn();
      return;
    }
    this.#trap = undefined;
    if (trap.when === "after") fn();
    trap.spring();
    if (trap.when === "before") this.#resume(kind, fn);
  }

  /** The step itself, after a fault that hit before it: it may have left the process dead or frozen. */
  #resume(kind: StepKind, fn: () => void): void {
    if (this.#state === "running" || kind === "request" || kind === "dial") {
      if (this.#state !== "dead") fn();
    } else if (this.#state === "frozen") {
      if (kind === "delivery") this.#delivered.unshift(fn);
      else this.#overdue.unshift(fn);
    }
  }
}
