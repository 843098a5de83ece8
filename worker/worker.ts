import { GetItemCommand, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { sleep, type AnchoredClock, type Cancel, type Clock } from "../shared/clock.ts";
import { CONNECTION } from "../shared/connection/attributes.ts";
import { errorFields, type Logger } from "../shared/logger.ts";
import type { MetricSink } from "../shared/metrics/sink.ts";
import type { Random } from "../shared/random.ts";
import { Connection, type ConnectionDeps } from "./connection/connection.ts";
import { DialGate } from "./connection/dial-gate.ts";
import type { Dial } from "./connection/socket.ts";
import { Connections } from "./connections.ts";
import { Acquirer } from "./intake/acquirer.ts";
import { HintConsumer } from "./intake/hint-consumer.ts";
import { MAX_BATCH, type HintQueue } from "./intake/hint-queue.ts";
import { OrphanFinder } from "./intake/orphan-finder.ts";
import { TokenBucket } from "./token-bucket.ts";
import type { ClockGuard } from "./lease/clock-guard.ts";
import { Heartbeater } from "./lease/heartbeater.ts";
import type { OwnershipJournal } from "./lease/journal.ts";
import { MessageWriter } from "./messages/writer.ts";
import type { WorkerSettings } from "./settings.ts";
import type { HealthReport } from "./telemetry/health.ts";
import { Metrics } from "./telemetry/metrics.ts";
import { MetricsReporter } from "./telemetry/reporter.ts";

/** Everything the worker takes from outside; `main.ts` builds it, tests and the simulation replace parts of it. */
export interface WorkerDeps {
  readonly owner: string;
  readonly settings: WorkerSettings;
  readonly clock: Clock;
  readonly anchored: AnchoredClock;
  readonly random: Random;
  readonly logger: Logger;
  /** For lease operations alone: nothing else may queue in front of a renewal. */
  readonly leaseClient: DynamoDBClient;
  readonly messageClient: DynamoDBClient;
  readonly queue: HintQueue;
  readonly dial: Dial;
  readonly sink: MetricSink;
  readonly journal: OwnershipJournal;
  readonly clockGuard: ClockGuard;
}

/** How often the clock's proven offset is looked at. */
const CLOCK_CHECK_MS = 1000;
/** The last metrics are worth a moment, not the end of the process. */
const LAST_METRICS_MS = 3000;
/** Answers asked for before anything is taken; as many as the guard wants to see. */
export const CLOCK_PROBES = 3;

/** The data plane of one task: intake → leases → sockets → stored messages. */
export class Worker {
  readonly #deps: WorkerDeps;
  readonly #metrics = new Metrics();
  readonly #connections: Connections;
  readonly #heartbeater: Heartbeater;
  readonly #writer: MessageWriter;
  readonly #acquirer: Acquirer;
  readonly #tokens: TokenBucket;
  readonly #reporter: MetricsReporter;
  #consumer: HintConsumer;
  #finder: OrphanFinder;
  #cancelClockCheck: Cancel | undefined;
  #draining: Promise<boolean> | undefined;
  #clockPause: Promise<void> | undefined;

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    const { anchored, clock, journal, leaseClient, logger, messageClient, random, settings } = deps;
    const metrics = this.#metrics;
    const table = { client: leaseClient, tableName: settings.connectionsTable };
    this.#connections = new Connections(settings.maxConnections);
    this.#heartbeater = new Heartbeater({ table, clock, anchored, random, logger, metrics, journal, settings });
    this.#writer = new MessageWriter({
      client: messageClient,
      tableName: settings.messagesTable,
      clock,
      random,
      logger,
      metrics,
      settings: {
        maxBytes: settings.writerMaxBytes,
        maxItems: settings.writerMaxItems,
        lingerMs: settings.writerLingerMs,
        concurrency: settings.writerConcurrency,
        ttlSeconds: settings.messageTtlSeconds,
      },
    });
    const connectionDeps: ConnectionDeps = {
      clock,
      anchored,
      random,
      logger,
      metrics,
      journal,
      keeper: this.#heartbeater,
      dial: deps.dial,
      dialGate: new DialGate(clock, settings.maxConcurrentDials, settings.dialsPerSecond),
      lane: (events, options) => this.#writer.lane(events, options),
      settings,
    };
    this.#acquirer = new Acquirer({
      owner: deps.owner,
      table,
      clock,
      anchored,
      logger,
      metrics,
      journal,
      keeper: this.#heartbeater,
      connections: this.#connections,
      settings,
      connect: (holding, raw, item, freeSinceMs) => new Connection(connectionDeps, holding, raw, item, freeSinceMs),
    });
    this.#tokens = new TokenBucket(
      clock,
      settings.acquiresPerSecond,
      Math.max(MAX_BATCH, Math.ceil(settings.acquiresPerSecond / 2)),
    );
    this.#finder = this.#newFinder();
    this.#consumer = this.#newConsumer();
    this.#reporter = new MetricsReporter({
      clock,
      logger,
      metrics,
      sink: deps.sink,
      intervalMs: settings.metricsMs,
      gauges: () => ({
        ActiveConnections: this.#connections.size,
        OpenSockets: this.#connections.openSockets(),
        ClockOffset: Math.abs(deps.clockGuard.provenOffsetMs()),
      }),
    });
  }

  /** Begins to take connections, once a few answers of the store did not disprove the clock. */
  async start(): Promise<void> {
    this.#reporter.start();
    await this.#askForTheTime();
    if (this.#isDraining()) return;
    if (this.#clockIsOff()) this.#clockPause = this.#pauseForClock();
    else this.#startIntake();
    this.#scheduleClockCheck();
  }

  /**
   * Gives everything back: no new poll, acquires under way finished or undone, all connections closed, flushed and
   * released side by side while they are still renewed. Calling it again changes nothing.
   *
   * @returns true when every lease was given back, and every message stored, within the budget; false asks the supervisor
   * to free whatever is still under this task's name.
   */
  drain(): Promise<boolean> {
    this.#draining ??= this.#drain();
    return this.#draining;
  }

  health(): HealthReport {
    return {
      healthy: this.#heartbeater.attempting(),
      draining: this.#draining !== undefined,
      connections: this.#connections.size,
      acquiring: this.#connections.acquiring,
      openSockets: this.#connections.openSockets(),
      states: this.#connections.countByState(),
      minTimeToDeadlineMs: this.#heartbeater.minTimeToDeadlineMs() ?? null,
      pendingMessages: this.#writer.pendingItems,
      pendingBytes: this.#writer.pendingBytes,
      oldestPendingMs: Math.round(this.#writer.oldestPendingMs),
    };
  }

  /** How old the oldest message is that was received and is not stored yet, ms; 0 without any. */
  oldestPendingMs(): number {
    return this.#writer.oldestPendingMs;
  }

  async #drain(): Promise<boolean> {
    const { clock, logger, settings } = this.#deps;
    logger.info({ connections: this.#connections.size }, "draining");
    this.#cancelClockCheck?.();
    const budget = new AbortController();
    const over = new Promise((resolve) => budget.signal.addEventListener("abort", resolve, { once: true }));
    const cancelBudget = clock.after(settings.drainBudgetMs, () => budget.abort());
    await Promise.race([this.#giveAllBack(), over]);
    const left = this.#connections.size + this.#connections.acquiring;
    this.#consumer.abandon();
    // What a lost connection received before its loss may still be on its way to the table.
    const stored = left === 0 && (await this.#writer.flushAll(budget.signal));
    this.#heartbeater.stop();
    await this.#writer.stop(budget.signal);
    cancelBudget();
    const told = new AbortController();
    await Promise.race([this.#reporter.stop(), sleep(clock, LAST_METRICS_MS, told.signal)]);
    told.abort();
    const unresolved = this.#acquirer.mayHaveLeftLeases();
    if (left > 0) logger.error({ connections: left }, "drain budget is over: leases are left to expire");
    else if (unresolved) logger.warn({}, "drained, but an acquire without a known outcome may have left a lease");
    else if (stored) logger.info({}, "drained");
    return left === 0 && stored && !unresolved;
  }

  async #giveAllBack(): Promise<void> {
    // The poll may stay open meanwhile: its hints are given back when it returns.
    void this.#consumer.stop();
    void this.#finder.stop();
    const acquires = this.#acquirer.stop();
    await this.#drainConnections();
    await acquires;
    await this.#drainConnections();
  }

  async #drainConnections(): Promise<void> {
    await Promise.all(this.#connections.all().map((connection) => connection.drain()));
  }

  #scheduleClockCheck(): void {
    this.#cancelClockCheck = this.#deps.clock.after(CLOCK_CHECK_MS, () => {
      if (this.#clockIsOff()) this.#clockPause ??= this.#pauseForClock();
      if (this.#draining === undefined) this.#scheduleClockCheck();
    });
  }

  /** Proven wrong by the store's answers, or left behind by the machine's own wall clock, as after a suspension. */
  #clockIsOff(): boolean {
    const { anchored, clockGuard, settings } = this.#deps;
    return clockGuard.beyondSkew() || anchored.leapMs() > settings.skewMs;
  }

  /**
   * The clock is off by more than the protocol tolerates: take nothing, poll nothing, give everything back, anchor anew,
   * and go on only when the new anchor is not disproved. It may be the wall clock that is wrong (somebody set it): then
   * the former anchor is the better one, so both are tried in turn.
   */
  async #pauseForClock(): Promise<void> {
    const { anchored, clock, clockGuard, logger } = this.#deps;
    logger.error(
      { offset_ms: clockGuard.provenOffsetMs(), leap_ms: Math.round(anchored.leapMs()) },
      "clock is off beyond the skew: giving everything back",
    );
    await Promise.all([this.#consumer.stop(), this.#finder.stop(), this.#giveAllBack()]);
    if (this.#isDraining()) return;
    const former = anchored.anchor;
    for (let byWall = true; ; byWall = !byWall) {
      // The wall clock anew each time: it may have been put right meanwhile.
      if (byWall) anchored.reanchor();
      else anchored.restore(former);
      clockGuard.reset();
      await sleep(clock, CLOCK_CHECK_MS);
      await this.#askForTheTime();
      if (this.#isDraining() || !this.#clockIsOff()) break;
    }
    if (this.#isDraining()) return;
    this.#acquirer.resume();
    this.#finder = this.#newFinder();
    this.#consumer = this.#newConsumer();
    this.#startIntake();
    this.#clockPause = undefined;
    logger.info({}, "clock anchored anew");
  }

  #startIntake(): void {
    this.#consumer.start();
    this.#finder.start();
  }

  #isDraining(): boolean {
    return this.#draining !== undefined;
  }

  /**
   * Until the store has answered a few times: a clock that was compared with nothing is not known to be right, and
   * the first thing that is taken after an outage must not be taken by a wrong one.
   */
  async #askForTheTime(): Promise<void> {
    while (!(await this.#timeTold()) && !this.#isDraining()) await sleep(this.#deps.clock, CLOCK_CHECK_MS);
  }

  /** A few cheap reads, of which every answer carries the server's time. False when one was not answered. */
  async #timeTold(): Promise<boolean> {
    const { leaseClient, logger, settings } = this.#deps;
    for (let i = 0; i < CLOCK_PROBES; i++) {
      try {
        await leaseClient.send(
          new GetItemCommand({
            TableName: settings.connectionsTable,
            // No connection can be called so.
            Key: { [CONNECTION.id]: { S: "#clock" } },
          }),
        );
      } catch (error) {
        logger.warn(errorFields(error), "the store does not answer");
        return false;
      }
    }
    return true;
  }

  #newConsumer(): HintConsumer {
    const { clock, logger, queue, random } = this.#deps;
    return new HintConsumer({
      queue,
      acquirer: this.#acquirer,
      connections: this.#connections,
      tokens: this.#tokens,
      clock,
      random,
      logger,
      metrics: this.#metrics,
      onSweepHint: () => this.#finder.onSweepHint(),
    });
  }

  #newFinder(): OrphanFinder {
    const { anchored, clock, leaseClient, logger, random, settings } = this.#deps;
    return new OrphanFinder({
      table: { client: leaseClient, tableName: settings.connectionsTable },
      acquirer: this.#acquirer,
      connections: this.#connections,
      tokens: this.#tokens,
      clock,
      anchored,
      random,
      logger,
      settings,
    });
  }
}
