import { maxHeartbeatMs } from "../../shared/config/rules.ts";
import type { Random } from "../../shared/random.ts";
import type { DemoOptions } from "../cli/demo-options.ts";
import { measure, type RunFacts } from "../report/measure.ts";
import type { RunReport } from "../report/report.ts";
import { auditTranscripts, type TranscriptAudit } from "../report/transcripts.ts";
import { excusingFaults } from "../report/excuses.ts";
import { collectEvidence } from "./collect.ts";
import { startAll, startRequest, stopAll } from "./connections.ts";
import { drainTasks } from "./drain.ts";
import { patienceMs, planFaults, recoveryMs } from "./fault-plan.ts";
import { FaultPlayer } from "./fault-player.ts";
import { startTasks } from "./fleet.ts";
import { LIVE_SHARE, withFleet, type RunDeps, type Session } from "./session.ts";
import { SocketWatch } from "./socket-watch.ts";
import { waitUntil } from "./wait.ts";

/** A burst that a producer may well make, and that leaves the machine to the fleet. */
export const STARTS_PER_SECOND = 75;
const STOPS_PER_SECOND = 150;
/** Beyond what the protocol promises for a STOP: everything shares this machine. */
const STOP_SLACK_MS = 1_000;
/** What a worker had received and not yet stored when it was struck. */
const GRACE_MS = 1_000;
/** What is under way when the speech ends is stored within moments. */
const STORING_LIMIT_MS = 15_000;
const POLL_MS = 250;

/**
 * One demo from nothing to nothing: starts everything, speaks, plays the faults, audits, stops everything.
 *
 * @throws {InterruptedError} when the signal aborts
 */
export function runDemo(options: DemoOptions, deps: RunDeps & { readonly random: Random }): Promise<RunReport> {
  const { connections, seconds, rate, seed } = options;
  const corpus = { connections, seconds, rate, seed, liveShare: LIVE_SHARE };
  return withFleet({ ...options, corpus }, deps, async (session) => {
    const result = await new Demo(options, session, deps.random).run();
    return { result, removeLogs: result.ok };
  });
}

/** Host clock milliseconds. */
interface Speech {
  readonly startSentAtMs: ReadonlyMap<string, number>;
  readonly allOpenAtMs: number;
}

class Demo {
  readonly #options: DemoOptions;
  readonly #session: Session;
  readonly #random: Random;
  readonly #sockets: SocketWatch;
  readonly #player: FaultPlayer;
  readonly #wallMinusHostMs: number;

  constructor(options: DemoOptions, session: Session, random: Random) {
    this.#options = options;
    this.#session = session;
    this.#random = random;
    const { fleet, clock, signal, view } = session;
    this.#sockets = new SocketWatch(fleet.upstream);
    this.#wallMinusHostMs = clock.wallMs() - clock.monotonicMs();
    this.#player = new FaultPlayer({
      fleet,
      workers: options.workers,
      clock,
      random,
      signal,
      recoveryLimitMs: (kind) => 2 * recoveryMs(kind, options.recovery) + 20_000,
      onFault: ({ kind, slot, held }) => view.say(`${kind}: worker ${slot + 1}, which holds ${held.size} connections`),
    });
    session.faults = () => this.#player.played;
  }

  async run(): Promise<RunReport> {
    const { monitor } = this.#session;
    monitor.phase = "starting workers";
    await startTasks(this.#session.fleet, this.#options.workers, this.#session);
    const speech = await this.#speak();
    await this.#playFaults(speech.allOpenAtMs);
    const spokenAtMs = await this.#untilSpoken();
    const unowned = await this.#untilOwned();
    const audit = await this.#audit();
    const stopped = await this.#stop();
    monitor.phase = "draining workers";
    const drained = await drainTasks(this.#session);
    const { fleet, corpus } = this.#session;
    const facts: RunFacts = {
      options: this.#options,
      connectionIds: corpus.transcripts.map(({ connectionId }) => connectionId),
      startsPerSecond: STARTS_PER_SECOND,
      startSentAtMs: speech.startSentAtMs,
      firstOpenAtMs: this.#sockets.firstOpenAtMs,
      window: { fromMs: speech.allOpenAtMs, toMs: spokenAtMs },
      faults: this.#player.played,
      evidence: await collectEvidence(this.#session, this.#player.played),
      wallMinusHostMs: this.#wallMinusHostMs,
      unowned,
      audit,
      stopped,
      drained,
      ended: fleet.ecs.ended.map(({ task }) => task),
      restartsOf: (slot) => fleet.ecs.restarts(slot),
      functions: structuredClone(fleet.lambda.stats),
    };
    return measure(facts);
  }

  async #speak(): Promise<Speech> {
    const { clock, corpus, fleet, monitor, signal } = this.#session;
    monitor.phase = "starting connections";
    const requests = corpus.transcripts.map((transcript) => startRequest(fleet.upstream, transcript));
    monitor.started = requests.length;
    const startSentAtMs = await startAll({ table: fleet.table, clock, signal }, requests, STARTS_PER_SECOND);
    await this.#wait(() => this.#sockets.firstOpenAtMs.size >= requests.length, patienceMs(this.#options.recovery));
    return { startSentAtMs, allOpenAtMs: clock.monotonicMs() };
  }

  async #playFaults(allOpenAtMs: number): Promise<void> {
    const { faults, recovery, seconds } = this.#options;
    this.#session.monitor.phase = "speaking";
    const beganAtMs = Math.min(allOpenAtMs, ...this.#sockets.firstOpenAtMs.values());
    // The first to be open is the first to be silent: faults are for while all speak.
    const plan = planFaults(faults, recovery, beganAtMs + seconds * 1000 - allOpenAtMs, this.#random);
    await this.#player.play(plan, allOpenAtMs);
  }

  /** @returns when the last segment was out */
  async #untilSpoken(): Promise<number> {
    const { clock, corpus, fleet } = this.#session;
    const limitMs = this.#options.seconds * 1000 + patienceMs(this.#options.recovery);
    await this.#wait(async () => (await fleet.upstream.status()).complete >= corpus.transcripts.length, limitMs);
    return clock.monotonicMs();
  }

  /** Waits until everybody has an owner that streams. @returns those that have none in the end */
  async #untilOwned(): Promise<string[]> {
    const { corpus, fleet, monitor } = this.#session;
    monitor.phase = "waiting for every transcript";
    const without = (): string[] => {
      fleet.live.poll();
      return corpus.transcripts
        .map(({ connectionId }) => connectionId)
        .filter((id) => fleet.live.get(id)?.open !== true || this.#sockets.openSockets(id) < 1);
    };
    await this.#wait(() => without().length === 0, patienceMs(this.#options.recovery));
    return without();
  }

  async #audit(): Promise<TranscriptAudit> {
    const { clock, corpus, fleet, monitor, signal } = this.#session;
    const evidence = await collectEvidence(this.#session, this.#player.played);
    const limitMs = clock.monotonicMs() + STORING_LIMIT_MS;
    return await auditTranscripts({
      source: { dynamodb: fleet.table.client, table: fleet.stack.messagesTable },
      transcripts: corpus.transcripts,
      recordOf: (connectionId) => evidence.records.get(connectionId),
      faults: excusingFaults(this.#player.played, evidence),
      graceMs: GRACE_MS,
      again: async () => {
        if (clock.monotonicMs() >= limitMs) return false;
        await waitUntil(() => false, { clock, signal, limitMs: 500, everyMs: 500 });
        return true;
      },
      onProgress: (done) => (monitor.phase = `auditing transcripts: ${done} of ${corpus.transcripts.length}`),
    });
  }

  async #stop(): Promise<RunFacts["stopped"]> {
    const { clock, corpus, fleet, monitor, signal } = this.#session;
    monitor.phase = "stopping connections";
    monitor.stopping = true;
    const { heartbeatMs, heartbeatJitter } = this.#options.timings;
    const limitMs = maxHeartbeatMs(heartbeatMs, heartbeatJitter) + 1_000 + STOP_SLACK_MS;
    const ids = corpus.transcripts.map(({ connectionId }) => connectionId);
    const stoppedAtMs = await stopAll({ table: fleet.table, clock, signal }, ids, STOPS_PER_SECOND);
    await this.#wait(() => ids.every((id) => this.#sockets.openSockets(id) < 1), 2 * limitMs);
    const closedMs: number[] = [];
    let late = 0;
    for (const id of ids) {
      const closedAtMs = this.#sockets.openSockets(id) < 1 ? this.#sockets.lastCloseAtMs.get(id) : undefined;
      const tookMs = closedAtMs === undefined ? undefined : Math.max(0, closedAtMs - (stoppedAtMs.get(id) ?? 0));
      if (tookMs !== undefined) closedMs.push(tookMs);
      // One without an owner has no socket to lose; it is counted as un-owned.
      if (tookMs === undefined ? this.#sockets.openSockets(id) > 0 : tookMs > limitMs) late += 1;
    }
    return { closedMs, limitMs, late };
  }

  async #wait(condition: () => boolean | Promise<boolean>, limitMs: number): Promise<boolean> {
    const { clock, signal } = this.#session;
    return await waitUntil(condition, { clock, signal, limitMs, everyMs: POLL_MS });
  }
}
