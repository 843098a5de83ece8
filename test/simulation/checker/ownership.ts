import type { RawItem } from "../../../shared/connection/item.ts";
import { leaseOf } from "../../../shared/connection/item.ts";
import type { Holding } from "../../../worker/lease/holding.ts";
import type { OwnershipEvent } from "../../../worker/lease/journal.ts";
import type { History } from "../engine/history.ts";
import type { Machine } from "../engine/machine.ts";
import type { Scheduler } from "../engine/scheduler.ts";
import type { Violations } from "./violations.ts";

/** What the checker must know of a worker to judge its endings. */
export interface WorkerView {
  readonly task: string;
  readonly machine: Machine;
  /** Asked to end, or giving everything back because its clock is proven to be off. */
  givingBack(): boolean;
}

export interface OwnershipDeps {
  readonly scheduler: Scheduler;
  readonly history: History;
  readonly violations: Violations;
  /** L − margin, ms. */
  readonly budgetMs: number;
  readonly item: (connectionId: string) => RawItem | undefined;
  /** True when the upstream or the producer gave a reason to park this connection lately. */
  readonly mayPark: (connectionId: string) => boolean;
  /** True when the connection was STOPPED at any time since `sinceMs`. */
  readonly stoppedSince: (connectionId: string, sinceMs: number) => boolean;
}

interface Tenure {
  readonly worker: WorkerView;
  readonly holding: Holding;
  readonly heldAtMs: number;
}

/** Clocks are read at whole events; a budget is compared with this much slack. */
const SLACK_MS = 5;

/**
 * Who acts on which connection: from *held* until *released*, *parked*, *lost*, *fenced*, or the local deadline by the
 * owner's own rule, read off its own clocks at every instant of true time.
 */
export class Ownership {
  readonly #deps: OwnershipDeps;
  readonly #tenures = new Map<string, Set<Tenure>>();
  readonly #sentAtMs = new Map<string, number>();
  /** By task, connection and epoch. */
  readonly #holdings = new Map<string, Holding>();

  constructor(deps: OwnershipDeps) {
    this.#deps = deps;
  }

  /** True time at which the lease operation was sent whose success was just handed to the worker. */
  confirmed(task: string, connectionId: string, sentAtMs: number): void {
    this.#sentAtMs.set(`${task}/${connectionId}`, sentAtMs);
  }

  journal(worker: WorkerView, event: OwnershipEvent, holding: Holding): void {
    const { history } = this.#deps;
    const id = holding.connectionId;
    const left = event === "held" || event === "renewed" ? ` (${Math.round(holding.deadline.remainingMs())} ms)` : "";
    history.add(worker.task, id, `${event} epoch ${holding.epoch}${left}`);
    if (event === "held" || event === "renewed") this.#extended(worker, event, holding);
    else if (event !== "open" && event !== "closed") this.#ended(worker, event, holding);
  }

  /** The epoch under which the task may act on the connection now. */
  actingEpoch(task: string, connectionId: string): bigint | undefined {
    for (const { worker, holding } of this.#tenures.get(connectionId) ?? []) {
      if (worker.task === task && holding.mayAct()) return holding.epoch;
    }
    return undefined;
  }

  /** Anything the upstream could see of an owner. */
  frame(task: string, connectionId: string, kind: string): void {
    if (this.actingEpoch(task, connectionId) !== undefined) return;
    this.#deps.violations.report("acts-outside-lease", connectionId, `${task} sends ${kind} without the right to act`);
  }

  /** A checkpoint leaves the worker: past the deadline nothing is claimed any more. */
  checkpointSent(task: string, connectionId: string, epoch: string): void {
    const holding = this.#holdings.get(`${task}/${connectionId}/${epoch}`);
    if (holding?.deadline.passed() !== true) return;
    this.#deps.violations.report("acts-outside-lease", connectionId, `${task} sends a checkpoint past its deadline`);
  }

  /** A change of the base item, at the instant it is applied. */
  itemChanged(connectionId: string, item: RawItem | undefined): void {
    const lease = item === undefined ? undefined : leaseOf(item);
    for (const { worker, holding } of this.#tenures.get(connectionId) ?? []) {
      if (!holding.mayAct()) continue;
      if (lease?.owner === worker.task && lease.epoch === holding.epoch) continue;
      this.#deps.violations.report(
        "taken-while-acting",
        connectionId,
        `${worker.task} acts under epoch ${holding.epoch} for ${Math.round(holding.deadline.remainingMs())} ms more, ` +
          `but the item names ${lease?.owner ?? "nobody"} and epoch ${String(lease?.epoch)}`,
      );
    }
  }

  /** The process is gone: it acts no more, whatever its deadlines say. */
  died(task: string): void {
    for (const tenures of this.#tenures.values()) {
      for (const tenure of tenures) if (tenure.worker.task === task) tenures.delete(tenure);
    }
  }

  #extended(worker: WorkerView, event: "held" | "renewed", holding: Holding): void {
    const { scheduler, violations, budgetMs } = this.#deps;
    const id = holding.connectionId;
    const tenures = this.#tenures.get(id) ?? new Set();
    this.#tenures.set(id, tenures);
    if (event === "held") {
      tenures.add({ worker, holding, heldAtMs: scheduler.nowMs });
      this.#holdings.set(`${worker.task}/${id}/${holding.epoch}`, holding);
    }

    const acting = [...tenures].filter((tenure) => tenure.holding.mayAct());
    if (acting.length > 1) {
      const names = acting.map((tenure) => `${tenure.worker.task} (epoch ${tenure.holding.epoch})`);
      violations.report("one-actor", id, `${names.join(" and ")} act at once`);
    }
    const sentAtMs = this.#sentAtMs.get(`${worker.task}/${id}`) ?? -Infinity;
    const endMs = scheduler.nowMs + holding.deadline.remainingMs() / worker.machine.rate;
    if (endMs > sentAtMs + budgetMs / worker.machine.rate + SLACK_MS) {
      const lateMs = Math.round(endMs - sentAtMs - budgetMs);
      violations.report(
        "deadline-too-late",
        id,
        `${worker.task}'s deadline is ${lateMs} ms later than its request allows`,
      );
    }
  }

  #ended(worker: WorkerView, event: Exclude<OwnershipEvent, "held" | "renewed" | "open" | "closed">, holding: Holding) {
    const { violations, item, mayPark, stoppedSince } = this.#deps;
    const id = holding.connectionId;
    const tenures = this.#tenures.get(id) ?? new Set();
    const tenure = [...tenures].find((candidate) => candidate.holding === holding);
    if (tenure === undefined) {
      violations.report("unexpected-error", id, `${worker.task} reports ${event} for a holding it never reported held`);
      return;
    }
    tenures.delete(tenure);
    const found = item(id);
    const lease = found === undefined ? undefined : leaseOf(found);
    const complain = (text: string): void => violations.report("stops-without-reason", id, `${worker.task} ${text}`);
    switch (event) {
      case "lost":
        if (lease?.owner === worker.task && lease.epoch === holding.epoch) {
          complain(`gives epoch ${holding.epoch} up as lost, but the item still names it`);
        }
        break;
      case "fenced":
        if (!holding.deadline.passed()) complain(`fences epoch ${holding.epoch} before its deadline`);
        break;
      case "released":
        if (!worker.givingBack() && lease !== undefined && !stoppedSince(id, tenure.heldAtMs)) {
          complain(`releases epoch ${holding.epoch}, though it neither drains nor is the connection STOPPED`);
        }
        break;
      case "parked":
        if (!mayPark(id)) complain(`parks epoch ${holding.epoch} although its upstream gave no reason`);
    }
  }
}
