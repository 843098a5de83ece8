import { maxHeartbeatMs } from "../../shared/config/rules.ts";
import type { Fault } from "../audit/compare-live.ts";
import type { RunTimings } from "../cli/usage.ts";
import type { RunFacts } from "../report/measure.ts";
import { auditTranscripts, type TranscriptAudit } from "../report/transcripts.ts";
import type { Upstream } from "../upstream/client.ts";
import { count, whole } from "../view/wording.ts";
import type { Evidence } from "./collect.ts";
import { startAll, startRequest, stopAll } from "./connections.ts";
import { patienceMs, type RecoveryTimings } from "./fault-plan.ts";
import type { Session } from "./session.ts";
import { SocketWatch } from "./socket-watch.ts";
import { waitUntil } from "./wait.ts";

/** A burst that a producer may well make, and that leaves the machine to the fleet. */
const STARTS_PER_SECOND = 75;
const STOPS_PER_SECOND = 150;
/** Beyond what the protocol promises for a STOP: everything shares this machine. */
const STOP_SLACK_MS = 1_000;
/** What a worker had received and not yet stored when it was struck. */
export const GRACE_MS = 1_000;
/** What is under way when the speech ends is stored within moments. */
const STORING_LIMIT_MS = 15_000;
const POLL_MS = 250;

/** Host clock milliseconds. */
export interface Speech {
  readonly startSentAtMs: ReadonlyMap<string, number>;
  readonly allOpenAtMs: number;
}

export interface StagesOptions {
  readonly seconds: number;
  readonly timings: Pick<RunTimings, "heartbeatMs" | "heartbeatJitter">;
  readonly recovery: RecoveryTimings;
}

/** What every audited run goes through, whatever faults it plays between. */
export class Stages {
  readonly sockets: SocketWatch;
  readonly #session: Session;
  readonly #options: StagesOptions;

  constructor(session: Session, options: StagesOptions) {
    this.#session = session;
    this.#options = options;
    this.sockets = new SocketWatch(session.fleet.upstream);
  }

  /** STARTs every connection and waits until all are open. @param upstream where the workers shall dial */
  async speak(upstream: Pick<Upstream, "wsUrl">): Promise<Speech> {
    const { clock, corpus, fleet, monitor, signal } = this.#session;
    monitor.phase = "starting connections";
    const requests = corpus.transcripts.map((transcript) => startRequest(upstream, transcript));
    monitor.started = requests.length;
    const startSentAtMs = await startAll({ table: fleet.table, clock, signal }, requests, STARTS_PER_SECOND);
    monitor.phase = "waiting until every connection is open";
    await this.#wait(() => this.sockets.firstOpenAtMs.size >= requests.length, patienceMs(this.#options.recovery));
    const never = requests.length - this.sockets.firstOpenAtMs.size;
    monitor.phase = never === 0 ? "speaking" : `speaking, ${count(never, "connection")} never opened`;
    return { startSentAtMs, allOpenAtMs: clock.monotonicMs() };
  }

  /** @returns when the last segment was out, or waiting for it had no sense any more */
  async untilSpoken(): Promise<number> {
    const { clock, corpus, fleet } = this.#session;
    const limitMs = this.#options.seconds * 1000 + patienceMs(this.#options.recovery);
    await this.#wait(async () => (await fleet.upstream.status()).complete >= corpus.transcripts.length, limitMs);
    return clock.monotonicMs();
  }

  /** Waits until everybody has an owner that streams. @returns those that have none in the end */
  async untilOwned(limitMs = patienceMs(this.#options.recovery)): Promise<string[]> {
    this.#session.monitor.phase = "waiting until every connection has an owner";
    await this.#wait(() => this.#withoutOwner().length === 0, limitMs);
    return this.#withoutOwner();
  }

  /** Compares what is stored with the speech. @param faults those that excuse gaps of feeds that cannot replay */
  async audit(evidence: Evidence, faults: readonly Fault[]): Promise<TranscriptAudit> {
    const { clock, corpus, fleet, monitor, signal } = this.#session;
    const limitMs = clock.monotonicMs() + STORING_LIMIT_MS;
    return await auditTranscripts({
      source: { dynamodb: fleet.table.client, table: fleet.stack.messagesTable },
      transcripts: corpus.transcripts,
      recordOf: (connectionId) => evidence.records.get(connectionId),
      faults,
      graceMs: GRACE_MS,
      again: async () => {
        if (clock.monotonicMs() >= limitMs) return false;
        await waitUntil(() => false, { clock, signal, limitMs: 500, everyMs: 500 });
        return true;
      },
      onProgress: (done, missing) => {
        const of = `${whole(done)} of ${count(corpus.transcripts.length, "transcript")}`;
        monitor.phase = `comparing with the speech: ${of}, ${whole(missing)} missing`;
      },
    });
  }

  /** STOPs every connection and measures how long their sockets stay. */
  async stop(): Promise<RunFacts["stopped"]> {
    const { clock, corpus, fleet, monitor, signal } = this.#session;
    monitor.phase = "stopping connections";
    monitor.stopping = true;
    const { heartbeatMs, heartbeatJitter } = this.#options.timings;
    const limitMs = maxHeartbeatMs(heartbeatMs, heartbeatJitter) + 1_000 + STOP_SLACK_MS;
    const ids = corpus.transcripts.map(({ connectionId }) => connectionId);
    const stoppedAtMs = await stopAll({ table: fleet.table, clock, signal }, ids, STOPS_PER_SECOND);
    await this.#wait(() => ids.every((id) => this.sockets.openSockets(id) < 1), 2 * limitMs);
    const closedMs: number[] = [];
    let late = 0;
    for (const id of ids) {
      const closedAtMs = this.sockets.openSockets(id) < 1 ? this.sockets.lastCloseAtMs.get(id) : undefined;
      const tookMs = closedAtMs === undefined ? undefined : Math.max(0, closedAtMs - (stoppedAtMs.get(id) ?? 0));
      if (tookMs !== undefined) closedMs.push(tookMs);
      // One without an owner has no socket to lose; it is counted as un-owned.
      if (tookMs === undefined ? this.sockets.openSockets(id) > 0 : tookMs > limitMs) late += 1;
    }
    return { closedMs, limitMs, late };
  }

  #withoutOwner(): string[] {
    const { corpus, fleet } = this.#session;
    fleet.live.poll();
    return corpus.transcripts
      .map(({ connectionId }) => connectionId)
      .filter((id) => fleet.live.get(id)?.open !== true || this.sockets.openSockets(id) < 1);
  }

  async #wait(condition: () => boolean | Promise<boolean>, limitMs: number): Promise<boolean> {
    const { clock, signal } = this.#session;
    return await waitUntil(condition, { clock, signal, limitMs, everyMs: POLL_MS });
  }
}
