import type { Cancel, Clock } from "../../shared/clock.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import type { Snapshot } from "../view/snapshot.ts";
import { AverageRate } from "./average-rate.ts";
import type { PlayedFault } from "./fault-player.ts";
import type { Fleet } from "./fleet.ts";

export interface MonitorDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly faults: () => readonly PlayedFault[];
  /** Undefined while nothing is audited. */
  readonly audited: () => { readonly lost: number; readonly checked: number } | undefined;
}

const POLL_MS = 1_000;
/** Workers post what they stored every second: a shorter window would jump. */
const RATE_WINDOW_MS = 6_000;

/** Gathers what the view shows, at a pace that the run does not feel. */
export class Monitor {
  /** What the run is doing now. */
  phase = "starting";
  /** Connections asked for so far. */
  started = 0;
  /** They are being stopped: one without an owner is no orphan any more. */
  stopping = false;
  readonly #deps: MonitorDeps;
  readonly #startedAtMs: number;
  #fleet: Fleet | undefined;
  #sent = 0;
  #stored = 0;
  readonly #sentRate = new AverageRate(RATE_WINDOW_MS);
  readonly #storedRate = new AverageRate(RATE_WINDOW_MS);
  #cancel: Cancel = () => undefined;
  #stopped = false;

  constructor(deps: MonitorDeps) {
    this.#deps = deps;
    this.#startedAtMs = deps.clock.monotonicMs();
  }

  watch(fleet: Fleet): void {
    this.#fleet = fleet;
    this.#poll();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  snapshot(): Snapshot {
    const { audited, clock, faults } = this.#deps;
    const open = new Map<string, number>();
    const held = new Map<string, number>();
    for (const holding of this.#fleet?.live.holdings.values() ?? []) {
      held.set(holding.task, (held.get(holding.task) ?? 0) + 1);
      if (holding.open) open.set(holding.task, (open.get(holding.task) ?? 0) + 1);
    }
    const all = this.#fleet?.live.holdings.size ?? 0;
    const frozen = new Set(
      faults().flatMap(({ kind, task, thawedAtMs }) => (kind === "freeze" && thawedAtMs === undefined ? [task] : [])),
    );
    return {
      elapsedMs: clock.monotonicMs() - this.#startedAtMs,
      phase: this.phase,
      workers: (this.#fleet?.ecs.running ?? []).map(({ taskId, slot, desiredStatus, lastStatus }) => ({
        slot,
        taskId,
        status: frozen.has(taskId) ? "FROZEN" : desiredStatus === "STOPPED" ? "STOPPING" : lastStatus,
        held: held.get(taskId) ?? 0,
        open: open.get(taskId) ?? 0,
        restarts: this.#fleet?.ecs.restarts(slot) ?? 0,
      })),
      started: this.started,
      open: [...open.values()].reduce((sum, count) => sum + count, 0),
      orphans: this.stopping ? 0 : Math.max(0, this.started - all),
      sent: this.#sent,
      stored: this.#stored,
      sentPerSecond: this.#sentRate.perSecond,
      storedPerSecond: this.#storedRate.perSecond,
      lost: audited()?.lost,
      checked: audited()?.checked ?? 0,
      faults: faults().map(({ kind, slot, held: struck, recoveredMs }) => ({
        kind,
        slot,
        held: struck.size,
        recovered: recoveredMs.size,
        slowestMs: Math.max(0, ...recoveredMs.values()),
      })),
    };
  }

  #poll(): void {
    const fleet = this.#fleet;
    if (fleet === undefined || this.#stopped) return;
    const { clock, logger } = this.#deps;
    this.#sample(fleet)
      .catch((error: unknown) => logger.warn(errorFields(error), "the run's state could not be read"))
      .finally(() => {
        if (!this.#stopped) this.#cancel = clock.after(POLL_MS, () => this.#poll());
      });
  }

  async #sample(fleet: Fleet): Promise<void> {
    const { segmentsSent } = await fleet.upstream.status();
    if (this.#stopped) return;
    fleet.live.poll();
    const atMs = this.#deps.clock.monotonicMs();
    this.#sent = segmentsSent;
    this.#stored = fleet.board.total("MessagesStored");
    this.#sentRate.add(atMs, this.#sent);
    this.#storedRate.add(atMs, this.#stored);
  }
}
