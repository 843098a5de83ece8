import type { Clock } from "../../shared/clock.ts";
import type { Random } from "../../shared/random.ts";
import type { Signalled } from "../ecs/agent-protocol.ts";
import { FROZEN_ON_MS, type FaultKind, type PlannedFault } from "./fault-plan.ts";
import { allUp, type Fleet } from "./fleet.ts";
import { pause, waitUntil } from "./wait.ts";

/** A fault as it was played. Times are host clock milliseconds. */
export interface PlayedFault {
  readonly kind: FaultKind;
  readonly task: string;
  readonly slot: number;
  atMs: number;
  /** When what it killed was seen dead. */
  deadAtMs?: number;
  /** When a frozen task was woken. */
  thawedAtMs?: number;
  /** What the task held, with the epochs, as far as its journal told at that moment. */
  readonly held: ReadonlyMap<string, number>;
  /** By connection, from the fault to the open socket of the next holding: the journals' view, while it happens. */
  readonly recoveredMs: Map<string, number>;
}

export interface FaultPlayerDeps {
  readonly fleet: Pick<Fleet, "ecs" | "live" | "board">;
  readonly workers: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal;
  /** How long a fault is waited for before the next one is played all the same. */
  readonly recoveryLimitMs: (kind: FaultKind) => number;
  readonly onFault?: (fault: PlayedFault) => void;
}

const POLL_MS = 250;

/** Plays the planned faults, each only after the one before was recovered from and all tasks are up again. */
export class FaultPlayer {
  readonly played: PlayedFault[] = [];
  readonly #deps: FaultPlayerDeps;

  constructor(deps: FaultPlayerDeps) {
    this.#deps = deps;
    followRecoveries(deps.fleet.live, this.played);
  }

  /** @param startedAtMs what the planned times count from */
  async play(plan: readonly PlannedFault[], startedAtMs: number): Promise<void> {
    const { clock, fleet, recoveryLimitMs, signal, workers } = this.#deps;
    for (const { kind, atMs } of plan) {
      const waitMs = startedAtMs + atMs - clock.monotonicMs();
      if (waitMs > 0) await pause(waitMs, clock, signal);
      await waitUntil(() => allUp(fleet, workers), { clock, signal, limitMs: recoveryLimitMs(kind), everyMs: POLL_MS });
      const fault = await this.#one(kind);
      await waitUntil(() => this.recovered(fault), { clock, signal, limitMs: recoveryLimitMs(kind), everyMs: POLL_MS });
      if (kind === "freeze") {
        await pause(FROZEN_ON_MS, clock, signal);
        fault.thawedAtMs = (await fleet.ecs.thaw(fault.task)).atMs;
      }
    }
  }

  recovered({ held, recoveredMs }: PlayedFault): boolean {
    this.#deps.fleet.live.poll();
    return recoveredMs.size >= held.size;
  }

  async #one(kind: FaultKind): Promise<PlayedFault> {
    const { fleet, onFault } = this.#deps;
    fleet.live.poll();
    const { task, slot } = this.#victim();
    const held = heldWithEpochs(fleet.live, task);
    const atMs = this.#deps.clock.monotonicMs();
    const fault: PlayedFault = { kind, task, slot, atMs, held, recoveredMs: new Map() };
    // Before it is done: the others may be quick.
    this.played.push(fault);
    Object.assign(fault, await strike(fleet.ecs, kind, task));
    onFault?.(fault);
    return fault;
  }

  /** One of the tasks that hold at least half of their share, at random: a fault that hits nothing shows nothing. */
  #victim(): { task: string; slot: number } {
    const { fleet, random, workers } = this.#deps;
    const share = fleet.live.holdings.size / workers;
    const candidates = fleet.ecs.running
      .filter(({ desiredStatus }) => desiredStatus === "RUNNING")
      .map(({ taskId, slot }) => ({ task: taskId, slot, held: fleet.live.heldBy(taskId).length }))
      .sort((a, b) => b.held - a.held);
    const worthy = candidates.filter(({ held }) => held > 0 && held >= share / 2);
    const victim = worthy[Math.floor(random() * worthy.length)] ?? candidates[0];
    if (victim === undefined) throw new Error("no task runs that a fault could hit");
    return victim;
  }
}

/** Does it to the task. @throws when the task does not run, or has no worker to crash */
export function strike(ecs: Pick<Fleet["ecs"], Striking>, kind: FaultKind, task: string): Promise<Signalled> {
  switch (kind) {
    case "crash":
      return ecs.crash(task);
    case "kill":
      return ecs.kill(task);
    case "term":
      return ecs.terminate(task);
    case "freeze":
      return ecs.freeze(task);
  }
}

type Striking = "crash" | "kill" | "terminate" | "freeze";

/** What the task holds now, as far as its journal told, with the epochs. */
export function heldWithEpochs(live: Pick<Fleet["live"], "heldBy" | "get">, task: string): Map<string, number> {
  return new Map(live.heldBy(task).map((connectionId) => [connectionId, live.get(connectionId)?.epoch ?? 0]));
}

/** Notes in each fault, from now on, which of its connections stream again under a later epoch. */
export function followRecoveries(live: Pick<Fleet["live"], "onLine">, played: readonly PlayedFault[]): void {
  live.onLine(({ connectionId, event, epoch, t }) => {
    if (event !== "open") return;
    for (const { held, recoveredMs, atMs } of played) {
      const before = held.get(connectionId);
      if (before !== undefined && epoch > before && !recoveredMs.has(connectionId)) {
        recoveredMs.set(connectionId, t - atMs);
      }
    }
  });
}
