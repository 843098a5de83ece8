import type { Random } from "../../shared/random.ts";
import type { DemoOptions } from "../cli/demo-options.ts";
import { excusingFaults } from "../report/excuses.ts";
import { measure, type RunFacts } from "../report/measure.ts";
import type { RunReport } from "../report/report.ts";
import type { TranscriptAudit } from "../report/transcripts.ts";
import { count } from "../view/wording.ts";
import { collectEvidence } from "./collect.ts";
import { drainTasks } from "./drain.ts";
import { planFaults, recoveryMs } from "./fault-plan.ts";
import { FaultPlayer } from "./fault-player.ts";
import { startTasks } from "./fleet.ts";
import { LIVE_SHARE, withFleet, type RunDeps, type Session } from "./session.ts";
import { Stages } from "./stages.ts";

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

class Demo {
  readonly #options: DemoOptions;
  readonly #session: Session;
  readonly #random: Random;
  readonly #stages: Stages;
  readonly #player: FaultPlayer;
  readonly #wallMinusHostMs: number;

  constructor(options: DemoOptions, session: Session, random: Random) {
    this.#options = options;
    this.#session = session;
    this.#random = random;
    const { fleet, clock, signal, view } = session;
    this.#stages = new Stages(session, options);
    this.#wallMinusHostMs = clock.wallMs() - clock.monotonicMs();
    this.#player = new FaultPlayer({
      fleet,
      workers: options.workers,
      clock,
      random,
      signal,
      recoveryLimitMs: (kind) => 2 * recoveryMs(kind, options.recovery) + 20_000,
      onFault: ({ kind, slot, held }) =>
        view.say(`${kind}: worker ${slot + 1}, which holds ${count(held.size, "connection")}`),
    });
    session.faults = () => this.#player.played;
  }

  async run(): Promise<RunReport> {
    const { fleet, corpus, monitor } = this.#session;
    monitor.phase = "starting workers";
    await startTasks(fleet, this.#options.workers, this.#session);
    const speech = await this.#stages.speak(fleet.upstream);
    await this.#playFaults(speech.allOpenAtMs);
    const spokenAtMs = await this.#stages.untilSpoken();
    const unowned = await this.#stages.untilOwned();
    const audit = await this.#audit();
    const stopped = await this.#stages.stop();
    monitor.phase = "draining workers";
    const drained = await drainTasks(this.#session);
    const facts: RunFacts = {
      options: this.#options,
      connectionIds: corpus.transcripts.map(({ connectionId }) => connectionId),
      startSentAtMs: speech.startSentAtMs,
      firstOpenAtMs: this.#stages.sockets.firstOpenAtMs,
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

  async #playFaults(allOpenAtMs: number): Promise<void> {
    const { faults, recovery, seconds } = this.#options;
    const beganAtMs = Math.min(allOpenAtMs, ...this.#stages.sockets.firstOpenAtMs.values());
    // The first to be open is the first to be silent: faults are for while all speak.
    const plan = planFaults(faults, recovery, beganAtMs + seconds * 1000 - allOpenAtMs, this.#random);
    await this.#player.play(plan, allOpenAtMs);
  }

  async #audit(): Promise<TranscriptAudit> {
    const evidence = await collectEvidence(this.#session, this.#player.played);
    return await this.#stages.audit(evidence, excusingFaults(this.#player.played, evidence));
  }
}
