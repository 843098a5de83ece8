import type { Clock } from "../../shared/clock.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import type { Task } from "../ecs/task.ts";
import { followRecoveries, heldWithEpochs, strike, type PlayedFault } from "../run/fault-player.ts";
import type { Fleet } from "../run/fleet.ts";
import { pause } from "../run/wait.ts";
import type { Network, Way } from "./network.ts";
import type { Deed, PlannedFault, ProcessKind } from "./plan.ts";
import type { FaultFigures } from "./proxy/protocol.ts";

/** A fault as it was played. Times are host clock milliseconds. */
export interface PlayedChaos {
  readonly planned: PlannedFault;
  /** Of the worker that it is aimed at. */
  readonly slot?: number;
  readonly atMs: number;
  endedAtMs: number | undefined;
  /** Why nothing was done: nobody was there, as the faults before had it. */
  skipped?: string;
  /** What came of a fault of the network, once it is over. */
  network?: FaultFigures;
  /** Whom it struck, for a fault of a process. */
  struck?: PlayedFault;
  /** Sockets that an upstream restart ended. */
  readonly sockets?: number;
}

export interface ChaosPlayerDeps {
  readonly fleet: Pick<Fleet, "ecs" | "live" | "upstream">;
  readonly network: Pick<Network, "begin" | "end">;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly onBegin: (played: PlayedChaos) => void;
  readonly onEnd: (played: PlayedChaos) => void;
}

type NetworkDeed = Extract<Deed, { does: "network" }>;

/** "Service restart", RFC 6455's registry. */
const RESTART_CODE = 1012;
const REFUSED_STATUS = 503;

/** Plays a plan: every fault at its time, whatever the others did. */
export class ChaosPlayer {
  readonly played: PlayedChaos[] = [];
  /** The struck tasks, in the order of time. */
  readonly struck: PlayedFault[] = [];
  readonly #deps: ChaosPlayerDeps;
  /** How many freezes are on, by task. */
  readonly #freezes = new Map<string, number>();

  constructor(deps: ChaosPlayerDeps) {
    this.#deps = deps;
    followRecoveries(deps.fleet.live, this.struck);
  }

  /**
   * Ends when the last fault has.
   *
   * @throws {InterruptedError}, or what a fault that could not be played threw
   */
  async play(plan: readonly PlannedFault[], startedAtMs: number): Promise<void> {
    await Promise.all(plan.map((planned) => this.#one(planned, startedAtMs)));
  }

  async #one(planned: PlannedFault, startedAtMs: number): Promise<void> {
    const { clock, signal } = this.#deps;
    const waitMs = startedAtMs + planned.atMs - clock.monotonicMs();
    if (waitMs > 0) await pause(waitMs, clock, signal);
    switch (planned.does) {
      case "process":
        await this.#strike(planned, planned);
        return;
      case "network":
        await this.#disturb(planned, planned);
        return;
      case "restart":
        await this.#restart(planned, planned.graceful);
        return;
      case "stall":
        await this.#deps.fleet.upstream.stall(planned.forMs);
        await this.#during(this.#begin({ planned }), {});
    }
  }

  async #disturb(planned: PlannedFault, { effect, place }: NetworkDeed): Promise<void> {
    const { network } = this.#deps;
    const { id } = planned;
    const slot = "rank" in place ? this.#victim(place.rank)?.slot : undefined;
    const played = this.#begin({ planned, ...(slot === undefined ? {} : { slot }) });
    const way: Way | undefined =
      place.at === "upstream" || place.at === "functions"
        ? { at: place.at }
        : slot === undefined
          ? undefined
          : { at: place.at, slot };
    if (way === undefined) {
      this.#skip(played, "no task runs");
      return;
    }
    await this.#during(played, {
      begin: () => network.begin({ id, effect, share: place.at === "upstream" ? place.share : 1 }, way),
      end: async () => void (played.network = await network.end(id)),
    });
  }

  async #restart(planned: PlannedFault, graceful: boolean): Promise<void> {
    const { upstream } = this.#deps.fleet;
    const { openSockets } = await upstream.status();
    await upstream.refuse(planned.forMs, REFUSED_STATUS);
    const played = this.#begin({ planned, sockets: openSockets });
    // Behind a black hole a close takes its time: the restart is over before.
    const ended = graceful ? upstream.closeAll(RESTART_CODE) : upstream.terminate();
    await Promise.all([ended, this.#during(played, {})]);
  }

  async #strike(
    planned: PlannedFault,
    { kind, rank }: { readonly kind: ProcessKind; readonly rank: number },
  ): Promise<void> {
    const { fleet, clock } = this.#deps;
    const victim = this.#victim(rank);
    if (victim === undefined) {
      this.#skip(this.#begin({ planned }), "no task runs");
      return;
    }
    const { taskId: task, slot } = victim;
    const held = heldWithEpochs(fleet.live, task);
    const struck: PlayedFault = { kind, task, slot, atMs: clock.monotonicMs(), held, recoveredMs: new Map() };
    this.struck.push(struck);
    const played = this.#begin({ planned, slot, struck });
    try {
      Object.assign(struck, await strike(fleet.ecs, kind, task));
    } catch (error) {
      // Another fault may have been quicker; what it takes away from this one is its own doing.
      this.struck.splice(this.struck.indexOf(struck), 1);
      delete played.struck;
      this.#skip(played, error instanceof Error ? error.message : String(error));
      return;
    }
    if (kind === "freeze") this.#freezes.set(task, (this.#freezes.get(task) ?? 0) + 1);
    await this.#during(played, {});
    if (kind === "freeze") await this.#thaw(task);
  }

  /** A task that was frozen twice wakes when the last of the freezes is over. */
  async #thaw(task: string): Promise<void> {
    const { fleet, logger } = this.#deps;
    const left = (this.#freezes.get(task) ?? 0) - 1;
    this.#freezes.set(task, left);
    if (left > 0) return;
    try {
      const { atMs } = await fleet.ecs.thaw(task);
      for (const one of this.struck) if (one.kind === "freeze" && one.task === task) one.thawedAtMs ??= atMs;
    } catch (error) {
      logger.info({ ...errorFields(error), task }, "a frozen task was killed before it was woken");
    }
  }

  /** Whatever happens to the run, the fault is undone. */
  async #during(
    played: PlayedChaos,
    { begin, end }: { readonly begin?: () => Promise<void>; readonly end?: () => Promise<void> },
  ): Promise<void> {
    const { clock, onEnd, signal } = this.#deps;
    await begin?.();
    try {
      await pause(played.planned.forMs, clock, signal);
    } finally {
      await end?.();
      played.endedAtMs = clock.monotonicMs();
    }
    if (played.planned.forMs > 0) onEnd(played);
  }

  /** Of the tasks that nobody has asked to end: the one at that rank by what it holds; an idle one only when all are. */
  #victim(rank: number): Readonly<Task> | undefined {
    const { ecs, live } = this.#deps.fleet;
    live.poll();
    const ranked = ecs.running
      .filter(({ desiredStatus }) => desiredStatus === "RUNNING")
      .map((task) => ({ task, held: live.heldBy(task.taskId).length }))
      .sort((a, b) => b.held - a.held);
    const busy = ranked.filter(({ held }) => held > 0);
    return (busy[rank % Math.max(1, busy.length)] ?? ranked[rank % Math.max(1, ranked.length)])?.task;
  }

  #begin(what: Pick<PlayedChaos, "planned" | "sockets" | "struck" | "slot">): PlayedChaos {
    const played: PlayedChaos = { ...what, atMs: this.#deps.clock.monotonicMs(), endedAtMs: undefined };
    this.played.push(played);
    this.#deps.onBegin(played);
    return played;
  }

  #skip(played: PlayedChaos, why: string): void {
    played.skipped = why;
    played.endedAtMs = played.atMs;
    this.#deps.onEnd(played);
  }
}
