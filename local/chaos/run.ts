import { measure } from "../report/measure.ts";
import type { RunReport } from "../report/report.ts";
import type { TranscriptAudit } from "../report/transcripts.ts";
import { collectEvidence } from "../run/collect.ts";
import { drainTasks } from "../run/drain.ts";
import type { RecoveryTimings } from "../run/fault-plan.ts";
import { startTasks, type FleetOptions } from "../run/fleet.ts";
import { LIVE_SHARE, withFleet, type RunDeps, type Session } from "../run/session.ts";
import { Stages } from "../run/stages.ts";
import { count } from "../view/wording.ts";
import { chaosExcuses, couldNotDrain, unexplainedFences } from "./excuses.ts";
import { calmBoundMs, costsLeases, judgeRecoveries, type BoundTimings } from "./judge.ts";
import { Network } from "./network.ts";
import type { ChaosOptions } from "./options.ts";
import { ChaosPlayer, type PlayedChaos } from "./player.ts";
import {
  byKind,
  chaosProblems,
  connectionsOf,
  eventsOf,
  mostAtOnce,
  type ChaosFigures,
  type ChaosReport,
} from "./report.ts";
import { withLinks, type ChaosEvidence } from "./witness.ts";
import { described } from "./wording.ts";

/** As late as AWS tells of a stopped task. */
const EVENT_DELAY_MS = 10_000;
const MAX_MISSING_EXAMPLES = 8;
const ALL_ON = { stream: true, queue: true, taskEvents: true, eventDelayMs: EVENT_DELAY_MS };

/**
 * One run from nothing to nothing: starts everything behind proxies, speaks, plays the plan, waits for calm, audits.
 *
 * @throws {InterruptedError} when the signal aborts
 */
export function runChaos(options: ChaosOptions, deps: RunDeps): Promise<ChaosReport> {
  const { connections, seconds, rate, seed, tuning, workers } = options;
  const corpus = { connections, seconds, rate, seed, liveShare: LIVE_SHARE };
  let network: Network | undefined;
  const detour = async (servers: Parameters<NonNullable<FleetOptions["detour"]>>[0]): Promise<Network> =>
    (network = await Network.start({ ...servers, workers, seed, env: deps.env }));
  return withFleet({ ...ALL_ON, tuning, corpus, detour }, deps, async (session) => {
    if (network === undefined) throw new Error("the fleet runs without its network");
    const result = await new Chaos(options, session, network).run();
    return { result, removeLogs: result.ok };
  });
}

class Chaos {
  readonly #options: ChaosOptions;
  readonly #session: Session;
  readonly #network: Network;
  readonly #timings: BoundTimings;
  readonly #recovery: RecoveryTimings;
  readonly #stages: Stages;
  readonly #player: ChaosPlayer;
  readonly #wallMinusHostMs: number;
  #startedAtMs = 0;

  constructor(options: ChaosOptions, session: Session, network: Network) {
    this.#options = options;
    this.#session = session;
    this.#network = network;
    this.#timings = { ...options.timings, ...ALL_ON };
    this.#recovery = this.#timings;
    this.#stages = new Stages(session, { ...options, recovery: this.#recovery });
    const { fleet, clock, logger, signal } = session;
    this.#wallMinusHostMs = clock.wallMs() - clock.monotonicMs();
    this.#player = new ChaosPlayer({
      fleet,
      network,
      clock,
      signal,
      logger,
      onBegin: (played) => this.#say(played, described(played.planned, played.slot)),
      onEnd: (played) => this.#say(played, ending(played)),
    });
    session.faults = () => this.#player.struck;
  }

  async run(): Promise<ChaosReport> {
    const { clock, corpus, fleet, monitor } = this.#session;
    const facts = this.#options;
    monitor.phase = "starting workers";
    await startTasks(fleet, facts.workers, this.#session);
    const speech = await this.#stages.speak(this.#network);
    this.#startedAtMs = clock.monotonicMs();
    monitor.phase = `chaos, ${count(facts.plan.length, "fault")}`;
    await this.#player.play(facts.plan, this.#startedAtMs);
    const calm = await this.#calm();
    const spokenAtMs = await this.#stages.untilSpoken();
    const unowned = await this.#stages.untilOwned();
    const audit = await this.#audit();
    const stopped = await this.#stages.stop();
    monitor.phase = "draining workers";
    const drained = await drainTasks(this.#session);
    const evidence = await this.#evidence();
    const report = measure({
      options: { ...facts, ...ALL_ON },
      connectionIds: corpus.transcripts.map(({ connectionId }) => connectionId),
      startSentAtMs: speech.startSentAtMs,
      firstOpenAtMs: this.#stages.sockets.firstOpenAtMs,
      window: { fromMs: speech.allOpenAtMs, toMs: spokenAtMs },
      faults: this.#player.struck.filter((struck) => costsLeases(struck, this.#recovery)),
      evidence,
      wallMinusHostMs: this.#wallMinusHostMs,
      unowned,
      // What the stages and the judges found is told beside it.
      audit: { ...audit, examples: audit.examples.slice(0, MAX_MISSING_EXAMPLES) },
      stopped,
      drained,
      ended: fleet.ecs.ended
        .filter((ended) => !couldNotDrain(ended, this.#player.played, this.#recovery.leaseMs))
        .map(({ task }) => task),
      restartsOf: (slot) => fleet.ecs.restarts(slot),
      functions: structuredClone(fleet.lambda.stats),
    });
    return await this.#judged(report, evidence, calm);
  }

  /** Waits until every connection streams, for as long as that may take. */
  async #calm(): Promise<ChaosFigures["calm"]> {
    const { clock } = this.#session;
    const boundMs = calmBoundMs(this.#timings);
    const calmAtMs = clock.monotonicMs();
    const without = await this.#stages.untilOwned(boundMs);
    return { streamingAfterMs: without.length === 0 ? clock.monotonicMs() - calmAtMs : null, boundMs };
  }

  async #audit(): Promise<TranscriptAudit> {
    const evidence = await this.#evidence();
    return await this.#stages.audit(evidence, chaosExcuses(this.#player.played, evidence));
  }

  async #evidence(): Promise<ChaosEvidence> {
    return withLinks(await collectEvidence(this.#session, this.#player.struck), await this.#network.links());
  }

  async #judged(report: RunReport, evidence: ChaosEvidence, calm: ChaosFigures["calm"]): Promise<ChaosReport> {
    const { ecs } = this.#session.fleet;
    const { played } = this.#player;
    const tasks = [...ecs.running, ...ecs.ended.map(({ task }) => task)];
    const slotOf = new Map(tasks.map(({ taskId, slot }) => [taskId, slot]));
    const fences = unexplainedFences(evidence.journal, played, slotOf, this.#recovery.leaseMs);
    const { examples: lateExamples, ...recovery } = judgeRecoveries(played, evidence, this.#timings);
    const seen = (event: string): number => evidence.journal.filter((line) => line.event === event).length;
    const chaos: ChaosFigures = {
      minutes: this.#options.minutes,
      byKind: byKind(played),
      mostAtOnce: mostAtOnce(played),
      network: await this.#network.totals(),
      events: eventsOf(played, this.#startedAtMs),
      calm,
      recovery,
      unexplainedFences: fences.length,
      lost: seen("lost"),
      parked: seen("parked"),
    };
    const problems = [...report.problems, ...chaosProblems(chaos)];
    const examples = [
      ...report.examples,
      ...lateExamples,
      ...fences
        .slice(0, 5)
        .map(({ connectionId, task, epoch }) => `${connectionId}: ${task}, epoch ${epoch}, was fenced without a cause`),
    ];
    return { ...report, ok: problems.length === 0, problems, examples, chaos };
  }

  #say({ planned }: PlayedChaos, text: string): void {
    const atS = (this.#session.clock.monotonicMs() - this.#startedAtMs) / 1000;
    this.#session.view.say(`+${atS.toFixed(1)} s  #${planned.id} ${text}`);
  }
}

function ending(played: PlayedChaos): string {
  if (played.skipped !== undefined) return `could not be done: ${played.skipped}`;
  return `is over; it was on ${count(connectionsOf(played), "connection")}`;
}
