import type { AnchoredClock, Clock } from "../../shared/clock.ts";
import {
  leaseOf,
  MalformedItemError,
  parseConnectionItem,
  type ConnectionItem,
  type RawItem,
} from "../../shared/connection/item.ts";
import {
  acquire,
  Deadline,
  renew,
  unknown,
  type Acquired,
  type Holder,
  type LeaseTable,
  type Lost,
  type Outcome,
} from "../../shared/lease/index.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import type { Connection } from "../connection/connection.ts";
import type { Connections } from "../connections.ts";
import { Holding } from "../lease/holding.ts";
import type { OwnershipJournal } from "../lease/journal.ts";
import type { KeepEvents, LeaseKeeper } from "../lease/keeper.ts";
import type { Metrics } from "../telemetry/metrics.ts";

export interface AcquirerSettings {
  readonly leaseMs: number;
  readonly marginMs: number;
  readonly skewMs: number;
  readonly acquireBudgetMs: number;
  readonly fatalParkMs: number;
}

export interface AcquirerDeps {
  readonly owner: string;
  readonly table: LeaseTable;
  readonly clock: Clock;
  readonly anchored: AnchoredClock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly journal: OwnershipJournal;
  readonly keeper: LeaseKeeper;
  readonly connections: Connections;
  readonly settings: AcquirerSettings;
  readonly connect: (holding: Holding, raw: RawItem, item: ConnectionItem, freeSinceMs?: number) => Connection;
}

/** What the one who brought the id should do: `settled` = forget the hint, `again` = let it come back. */
export type AcquireResult = "held" | "settled" | "again";

/**
 * Turns "look at this one" into a holding, or into nothing. Whatever a hint says, only the conditional write decides.
 */
export class Acquirer {
  readonly #deps: AcquirerDeps;
  readonly #underWay = new Map<string, Promise<AcquireResult>>();
  /** Ids of acquires that may have been applied, or may be yet, with the time they were given up (monotonic ms). */
  readonly #unresolved = new Map<string, number>();
  #stopped = false;

  constructor(deps: AcquirerDeps) {
    this.#deps = deps;
  }

  async tryAcquire(connectionId: string, freeSinceMs?: number): Promise<AcquireResult> {
    const { connections } = this.#deps;
    if (this.#stopped) return "again";
    const begun = connections.beginAcquire(connectionId);
    if (begun === "full") return "again";
    if (begun === "known") {
      // An acquire that is refused may have been judged before what this hint tells of.
      if (this.#underWay.has(connectionId)) {
        return (await this.#underWay.get(connectionId)) === "held" ? "settled" : "again";
      }
      // A healthy lease of our own needs no hint; one that is ending may want an owner in a moment.
      return connections.get(connectionId)?.holding.mayAct() === true ? "settled" : "again";
    }
    const attempt = this.#attempt(connectionId, freeSinceMs);
    this.#underWay.set(connectionId, attempt);
    try {
      return await attempt;
    } finally {
      this.#underWay.delete(connectionId);
    }
  }

  /** No acquire starts from now on; resolves when those under way are finished or undone. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.allSettled(this.#underWay.values());
  }

  /**
   * True while the table may name us as owner of something that nobody here holds: an acquire without a known outcome,
   * less than a lease ago. Whoever ends the process should free what it finds under this owner.
   */
  mayHaveLeftLeases(): boolean {
    this.#forgetExpired();
    return this.#unresolved.size > 0;
  }

  #forgetExpired(): void {
    const oldestMs = this.#deps.clock.monotonicMs() - this.#deps.settings.leaseMs;
    for (const [id, atMs] of this.#unresolved) if (atMs < oldestMs) this.#unresolved.delete(id);
  }

  /** Takes acquires up again, after a pause for a clock that was off. */
  resume(): void {
    this.#stopped = false;
  }

  async #attempt(connectionId: string, freeSinceMs?: number): Promise<AcquireResult> {
    const { connections, logger, metrics } = this.#deps;
    let connection: Connection | undefined;
    try {
      const { outcome, deadline } = await this.#write(connectionId);
      if (outcome.kind === "unknown") {
        if (outcome.reason === "clock") {
          logger.warn({ connection_id: connectionId, ...errorFields(outcome.error) }, "nothing is taken now");
        } else if (outcome.reason !== "expiring") {
          this.#forgetExpired();
          this.#unresolved.set(connectionId, this.#deps.clock.monotonicMs());
          logger.warn(
            { connection_id: connectionId, reason: outcome.reason, ...errorFields(outcome.error) },
            "acquire without a known outcome; its hint stays",
          );
        }
        return "again";
      }
      this.#unresolved.delete(connectionId);
      if (outcome.kind === "lost") {
        this.#refused(connectionId, outcome);
        return "settled";
      }
      metrics.count("LeaseAcquired");
      connection = await this.#hold(connectionId, outcome.value, deadline, freeSinceMs);
      return connection === undefined ? "settled" : "held";
    } finally {
      connections.endAcquire(connectionId, connection);
      connection?.start();
    }
  }

  async #write(connectionId: string): Promise<{ outcome: Outcome<Acquired>; deadline: Deadline }> {
    const { anchored, clock, owner, settings, table } = this.#deps;
    const abort = new AbortController();
    const cancel = clock.after(settings.acquireBudgetMs, () => abort.abort());
    const options = { signal: abort.signal };
    try {
      const { leaseMs, skewMs } = settings;
      // Before the request: the store counts the lease from no earlier a moment.
      let deadline = Deadline.startingNow(clock, leaseMs - settings.marginMs);
      const nowMs = anchored.nowMs();
      // Read after the time it judges: a suspension in between shows here, a later one only ages the whole request.
      const leapMs = anchored.leapMs();
      if (leapMs > skewMs) {
        const error = new Error(
          `the wall clock is ${Math.round(leapMs)} ms ahead of the time that leases are counted by`,
        );
        return { outcome: unknown("clock", error), deadline };
      }
      let outcome = await acquire(table, { connectionId, owner, nowMs, leaseMs, skewMs }, options);
      if (outcome.kind === "lost" && outcome.reason === "own-older-life" && outcome.item !== undefined) {
        deadline = Deadline.startingNow(clock, leaseMs - settings.marginMs);
        outcome = await this.#takeOver(connectionId, outcome, outcome.item, options);
      }
      return { outcome, deadline };
    } finally {
      cancel();
    }
  }

  /**
   * The table names us as owner, yet nothing in this process holds the connection: an acquire whose answer never came
   * was applied after all. Only a renewal under that epoch proves that it is still ours. No release of that epoch can be
   * on its way: a holding stays among the connections until its release is settled.
   */
  async #takeOver(
    connectionId: string,
    refused: Lost,
    item: RawItem,
    options: { signal: AbortSignal },
  ): Promise<Outcome<Acquired>> {
    const { anchored, owner, settings, table } = this.#deps;
    const { epoch, expiresAtMs } = leaseOf(item);
    if (epoch === undefined || expiresAtMs === undefined) return refused;
    const nowMs = anchored.latestMs();
    // Beyond what is stored, but never beyond an absurd value, which the audit mends.
    const newExpiresAtMs = Math.max(nowMs + settings.leaseMs, Math.min(expiresAtMs + 1, nowMs + 2 * settings.leaseMs));
    const outcome = await renew(table, { connectionId, owner, epoch, expiresAtMs: newExpiresAtMs }, options);
    if (outcome.kind !== "held") return outcome;
    return { kind: "held", value: { epoch, expiresAtMs: newExpiresAtMs, item: outcome.value.item } };
  }

  #refused(connectionId: string, lost: Lost): void {
    const { logger, metrics } = this.#deps;
    if (lost.reason === "owned") metrics.count("LeaseAcquireConflicts");
    if (lost.reason === "malformed") {
      metrics.count("MalformedItems");
      logger.warn(
        { connection_id: connectionId },
        "malformed item: lease_expires_at_ms or lease_epoch is missing or not a number",
      );
    } else {
      logger.debug({ connection_id: connectionId, reason: lost.reason }, "hint without effect");
    }
  }

  /** A connection for what was just acquired, or undefined when it had to be given back at once. */
  async #hold(
    connectionId: string,
    acquired: Acquired,
    deadline: Deadline,
    freeSinceMs?: number,
  ): Promise<Connection | undefined> {
    const { connect, journal, keeper, logger, metrics, owner, settings } = this.#deps;
    const holder: Holder = { connectionId, owner, epoch: acquired.epoch };
    const holding = new Holding(holder, deadline, acquired.expiresAtMs);
    const log = { connection_id: connectionId, epoch: acquired.epoch.toString() };
    if (this.#stopped || !holding.mayAct()) {
      // The drain began, or the answer came too late to be worth anything: undone before anybody acts.
      holding.end();
      keeper.keep(holding, nobody);
      await keeper.end(holding, { kind: "release", checkpoint: undefined });
      return undefined;
    }
    journal.record("held", holding);
    logger.info(log, "lease acquired");
    try {
      return connect(holding, acquired.item, parseConnectionItem(acquired.item), freeSinceMs);
    } catch (error) {
      if (!(error instanceof MalformedItemError)) throw error;
      metrics.count("MalformedItems");
      logger.warn({ ...log, problems: error.problems }, "malformed item: parked");
      keeper.keep(holding, nobody);
      await keeper.end(holding, {
        kind: "park",
        checkpoint: undefined,
        parkMs: settings.fatalParkMs,
        error: error.problems.join("; "),
      });
      return undefined;
    }
  }
}

/** A holding that only exists to be given back. */
const nobody: KeepEvents = {
  checkpoint: () => undefined,
  clearFailures: () => false,
  onRenewed: () => undefined,
  onLost: () => undefined,
  onFenced: () => undefined,
};
