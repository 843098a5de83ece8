import type { AnchoredClock, Cancel, Clock } from "../../shared/clock.ts";
import type { Logger } from "../../shared/logger.ts";
import { errorFields } from "../../shared/logger.ts";
import {
  Deadline,
  isRejectedItem,
  park,
  release,
  renew,
  type CallOptions,
  type Checkpoint,
  type LeaseTable,
  type Outcome,
} from "../../shared/lease/index.ts";
import { jittered, type Random } from "../../shared/random.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Holding } from "./holding.ts";
import type { OwnershipJournal } from "./journal.ts";
import type { Ending, KeepEvents, LeaseKeeper } from "./keeper.ts";

export interface HeartbeaterSettings {
  readonly leaseMs: number;
  readonly marginMs: number;
  readonly heartbeatMs: number;
  readonly heartbeatJitter: number;
  readonly maxConcurrentLeaseOps: number;
  readonly attempts: number;
  readonly attemptTimeoutMs: number;
}

export interface HeartbeaterDeps {
  readonly table: LeaseTable;
  readonly clock: Clock;
  readonly anchored: AnchoredClock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly journal: OwnershipJournal;
  readonly settings: HeartbeaterSettings;
}

/** Pause after an operation whose outcome nobody knows; jittered. The client has already tried several times. */
const RETRY_MS = 500;
/** The loop runs at least this often, so that its own health can be told from a quiet minute. */
const MAX_SLEEP_MS = 1000;
/** Wake-ups closer than this are taken together. */
const MIN_SLEEP_MS = 5;

interface Entry {
  readonly holding: Holding;
  readonly events: KeepEvents;
  /** When the next operation should start, monotonic ms. */
  dueMs: number;
  busy: boolean;
  ending: Ending | undefined;
  parkUntilMs: number | undefined;
  /** The store refuses this item's content (too large, a wrong type): only owner and expiry are written from now on. */
  bare: boolean;
  settled: ((result: "held" | "lost") => void)[];
  /** What the last confirmed write stored, so that an unmoved checkpoint is not written again. */
  written: bigint | undefined;
}

/**
 * Renews every holding of this worker by one conditional write each: the earliest deadline first, a jittered phase and
 * bounded concurrency.
 *
 * An entry is *kept* (renewed at each due time) until it is *ending* (its release or park is tried until the store says
 * held or lost) or its deadline passes, which fences it and makes it end by a bare release: a late renewal of its own
 * could otherwise keep the connection dark.
 */
export class Heartbeater implements LeaseKeeper {
  readonly #deps: HeartbeaterDeps;
  readonly #entries = new Map<Holding, Entry>();
  #inFlight = 0;
  #cancelTimer: Cancel | undefined;
  #wakeAtMs = Infinity;
  #lastScanMs: number;
  #lastStartMs = -Infinity;
  #lastFullMs = -Infinity;
  #stopped = false;

  constructor(deps: HeartbeaterDeps) {
    this.#deps = deps;
    this.#lastScanMs = deps.clock.monotonicMs();
    this.#sleep();
  }

  get size(): number {
    return this.#entries.size;
  }

  keep(holding: Holding, events: KeepEvents): void {
    const { clock, random, settings } = this.#deps;
    // A random phase: leases taken in one burst are not renewed in one.
    const phaseMs = settings.heartbeatMs * (0.3 + 0.7 * random());
    this.#entries.set(holding, {
      holding,
      events,
      dueMs: clock.monotonicMs() + phaseMs,
      busy: false,
      ending: undefined,
      parkUntilMs: undefined,
      bare: false,
      settled: [],
      written: undefined,
    });
    this.#wakeBy(clock.monotonicMs() + phaseMs);
  }

  end(holding: Holding, ending: Ending): Promise<"held" | "lost"> {
    const entry = this.#entries.get(holding);
    if (entry === undefined) return Promise.resolve("lost");
    return new Promise((resolve) => {
      entry.settled.push(resolve);
      if (entry.ending === undefined) {
        entry.ending = ending;
        // Before the write is sent: whoever acquires next may act the moment it is applied.
        if (holding.state === "acting") {
          this.#deps.journal.record(ending.kind === "park" ? "parked" : "released", holding);
          holding.end();
        }
        entry.dueMs = this.#deps.clock.monotonicMs();
      }
      this.#start(entry);
    });
  }

  fence(holding: Holding): void {
    const entry = this.#entries.get(holding);
    if (entry !== undefined) this.#fence(entry);
  }

  /** Leases whose holder still acts or whose end is not settled; the smallest time to a deadline; undefined without any. */
  minTimeToDeadlineMs(): number | undefined {
    let min: number | undefined;
    for (const { holding } of this.#entries.values()) {
      if (holding.state === "acting") min = Math.min(min ?? Infinity, holding.deadline.remainingMs());
    }
    return min;
  }

  /**
   * True while the loop has *attempted* its round in time. Not while it succeeds: an outage of the store must not make
   * the orchestrator kill every task.
   */
  attempting(): boolean {
    const { clock, settings } = this.#deps;
    const patienceMs = settings.heartbeatMs * (1 + settings.heartbeatJitter) + MAX_SLEEP_MS;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#lastScanMs > patienceMs) return false;
    // Requests that wait for a silent store take all places, and the rest falls behind: that is the store's fault, not the
    // loop's, as long as places change hands.
    if (nowMs - this.#lastFullMs <= MAX_SLEEP_MS) return nowMs - this.#lastStartMs <= patienceMs;
    for (const entry of this.#entries.values()) {
      if (!entry.busy && nowMs - entry.dueMs > patienceMs) return false;
    }
    return true;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
  }

  /** One round. Nothing in it may end the loop: a renewal that dies silently is a connection that goes dark. */
  #scan(): void {
    this.#wakeAtMs = Infinity;
    const { clock, logger, metrics } = this.#deps;
    this.#lastScanMs = clock.monotonicMs();
    try {
      const due: Entry[] = [];
      for (const entry of this.#entries.values()) {
        if (entry.holding.state === "acting" && entry.holding.deadline.passed()) this.#fence(entry);
        if (!entry.busy && entry.dueMs <= this.#lastScanMs) due.push(entry);
      }
      due.sort((a, b) => urgency(a.holding) - urgency(b.holding));
      for (const entry of due) this.#start(entry);
      const minMs = this.minTimeToDeadlineMs();
      if (minMs !== undefined) metrics.minimum("LeaseTimeToDeadline", Math.max(0, minMs));
    } catch (error) {
      logger.error(errorFields(error), "heartbeat round failed");
    }
    this.#sleep();
  }

  #sleep(): void {
    const nowMs = this.#deps.clock.monotonicMs();
    let nextMs = nowMs + MAX_SLEEP_MS;
    // While all places are taken, the end of an operation wakes the loop; a due entry cannot start before that.
    const full = this.#inFlight >= this.#deps.settings.maxConcurrentLeaseOps;
    for (const entry of this.#entries.values()) {
      if (!entry.busy && !full) nextMs = Math.min(nextMs, entry.dueMs);
      if (entry.holding.state === "acting") {
        nextMs = Math.min(nextMs, nowMs + Math.max(0, entry.holding.deadline.remainingMs()));
      }
    }
    this.#wakeBy(nextMs);
  }

  #wakeBy(atMs: number): void {
    if (this.#stopped || atMs >= this.#wakeAtMs) return;
    this.#cancelTimer?.();
    const delayMs = Math.max(MIN_SLEEP_MS, atMs - this.#deps.clock.monotonicMs());
    this.#wakeAtMs = atMs;
    this.#cancelTimer = this.#deps.clock.after(delayMs, () => this.#scan());
  }

  #fence(entry: Entry): void {
    const { holding } = entry;
    if (holding.state !== "acting") return;
    const { clock, journal, logger, metrics } = this.#deps;
    holding.fence();
    journal.record("fenced", holding);
    metrics.count("LeaseFenced");
    logger.warn(
      { connection_id: holding.connectionId, epoch: holding.epoch.toString() },
      "lease fenced: its local deadline passed",
    );
    // No checkpoint: past the deadline nothing is claimed any more.
    entry.ending ??= { kind: "release", checkpoint: undefined };
    entry.dueMs = clock.monotonicMs();
    guard(logger, () => entry.events.onFenced());
    this.#wakeBy(entry.dueMs);
  }

  #start(entry: Entry): void {
    if (entry.busy || this.#stopped || !this.#entries.has(entry.holding)) return;
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#inFlight >= this.#deps.settings.maxConcurrentLeaseOps) {
      this.#lastFullMs = nowMs;
      return;
    }
    this.#lastStartMs = nowMs;
    entry.busy = true;
    this.#inFlight++;
    const { attempts, attemptTimeoutMs } = this.#deps.settings;
    const abort = new AbortController();
    // Whatever the client does: one operation that never ends would be a connection that is never renewed again.
    const cancelLimit = this.#deps.clock.after(attempts * attemptTimeoutMs, () => abort.abort());
    const options = { signal: abort.signal };
    const operation =
      entry.ending === undefined ? this.#renew(entry, options) : this.#finish(entry, entry.ending, options);
    operation
      .catch((error: unknown) => {
        this.#deps.logger.error(errorFields(error), "lease operation failed");
        this.#retryLater(entry);
      })
      .finally(() => {
        cancelLimit();
        entry.busy = false;
        this.#inFlight--;
        if (
          entry.ending !== undefined &&
          this.#entries.has(entry.holding) &&
          entry.dueMs <= this.#deps.clock.monotonicMs()
        ) {
          this.#start(entry);
        }
        this.#sleep();
      });
  }

  async #renew(entry: Entry, options: CallOptions): Promise<void> {
    const { table, clock, anchored, journal, metrics, settings, random } = this.#deps;
    const { holding, events } = entry;
    const checkpoint = entry.bare ? undefined : unwritten(entry, events.checkpoint());
    const clearFailures = !entry.bare && events.clearFailures();
    // Before the expiry is computed, and so before the request: whatever happens between these lines, the local deadline
    // comes no later than the margin allows.
    const deadline = Deadline.startingNow(clock, settings.leaseMs - settings.marginMs);
    // `latestMs`: on a machine that was suspended the anchored time is late, and an expiry that is too early would let
    // another worker take what this one goes on acting on.
    const expiresAtMs = Math.max(anchored.latestMs() + settings.leaseMs, holding.expiresAtMs + 1);
    holding.sending(expiresAtMs);
    const startedMs = clock.monotonicMs();
    const outcome = await renew(
      table,
      {
        connectionId: holding.connectionId,
        owner: holding.owner,
        epoch: holding.epoch,
        expiresAtMs,
        ...(checkpoint === undefined ? {} : { checkpoint }),
        clearFailures,
      },
      options,
    );
    metrics.observe("RenewalLatency", clock.monotonicMs() - startedMs);

    if (outcome.kind === "lost") {
      this.#lost(entry, outcome);
    } else if (outcome.kind === "unknown") {
      this.#unknown(entry, outcome.reason, outcome.error);
    } else {
      holding.extend(deadline);
      // Where somebody put the stored expiry ahead of ours nothing was written; the next renewal must go beyond it. Not
      // beyond an absurd one: that would keep it absurd, while the audit mends it.
      holding.sending(Math.min(outcome.value.expiresAtMs, anchored.latestMs() + 2 * settings.leaseMs));
      if (outcome.value.written && checkpoint !== undefined) entry.written = checkpoint.lastSeq;
      if (entry.ending !== undefined) return; // asked for while the renewal was on its way: #start takes it up
      entry.dueMs = clock.monotonicMs() + jittered(settings.heartbeatMs, settings.heartbeatJitter, random);
      if (holding.mayAct()) {
        journal.record("renewed", holding);
        guard(this.#deps.logger, () => events.onRenewed(outcome.value.item));
      }
    }
  }

  async #finish(entry: Entry, ending: Ending, options: CallOptions): Promise<void> {
    const { table, anchored } = this.#deps;
    const { holding } = entry;
    // Past the deadline nothing is claimed any more, also not by a release that is only tried again.
    const over = entry.bare || holding.state === "fenced" || holding.deadline.passed();
    const checkpoint = over ? undefined : unwritten(entry, ending.checkpoint);
    const holder = {
      connectionId: holding.connectionId,
      owner: holding.owner,
      epoch: holding.epoch,
      ...(checkpoint === undefined ? {} : { checkpoint }),
    };
    let outcome: Outcome<undefined>;
    if (ending.kind === "park") {
      outcome = await park(
        table,
        {
          ...holder,
          // The first one stays: a repeated park recognises its own success by it.
          untilMs: (entry.parkUntilMs ??= anchored.nowMs() + Math.ceil(ending.parkMs)),
          ...(entry.bare ? {} : { error: ending.error }),
        },
        options,
      );
    } else {
      outcome = await release(table, holder, options);
    }
    if (outcome.kind === "unknown") this.#unknown(entry, outcome.reason, outcome.error);
    else this.#settle(entry, outcome.kind);
  }

  #unknown(entry: Entry, reason: string, error: unknown): void {
    this.#deps.logger.warn(
      {
        connection_id: entry.holding.connectionId,
        epoch: entry.holding.epoch.toString(),
        reason,
        ending: entry.ending?.kind,
        ...errorFields(error),
      },
      "lease operation without a known outcome; it is tried again",
    );
    if (isRejectedItem(error) && !entry.bare) {
      // The same write would be refused for ever, and with it the connection would be dark for ever.
      entry.bare = true;
      this.#deps.metrics.count("MalformedItems");
    }
    this.#retryLater(entry);
  }

  #retryLater(entry: Entry): void {
    entry.dueMs = this.#deps.clock.monotonicMs() + jittered(RETRY_MS, 0.5, this.#deps.random);
  }

  #lost(entry: Entry, outcome: Extract<Outcome<unknown>, { kind: "lost" }>): void {
    const { holding, events } = entry;
    const acted = holding.state === "acting";
    if (acted) {
      this.#deps.journal.record("lost", holding);
      this.#deps.metrics.count("LeaseLost");
    }
    holding.end();
    this.#settle(entry, "lost");
    if (acted) guard(this.#deps.logger, () => events.onLost(outcome));
  }

  #settle(entry: Entry, result: "held" | "lost"): void {
    entry.holding.end();
    this.#entries.delete(entry.holding);
    for (const settled of entry.settled) settled(result);
  }
}

/** Sorts by the earliest deadline; one that has passed cannot be met any more, and must not take a place from one that can. */
function urgency({ deadline }: Holding): number {
  const remainingMs = deadline.remainingMs();
  return remainingMs > 0 ? remainingMs : Number.MAX_SAFE_INTEGER;
}

/** The checkpoint, unless the last confirmed write already stored it. */
function unwritten(entry: Entry, checkpoint: Checkpoint | undefined): Checkpoint | undefined {
  return checkpoint !== undefined && (entry.written === undefined || checkpoint.lastSeq > entry.written)
    ? checkpoint
    : undefined;
}

function guard(logger: Logger, callback: () => void): void {
  try {
    callback();
  } catch (error) {
    logger.error(errorFields(error), "a connection's callback failed");
  }
}
