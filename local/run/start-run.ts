import type { StartOptions } from "../cli/start-options.ts";
import { count, whole } from "../view/wording.ts";
import { startAll, startRequest } from "./connections.ts";
import { drainTasks } from "./drain.ts";
import { startTasks } from "./fleet.ts";
import { LiveAudit } from "./live-audit.ts";
import { LIVE_SHARE, withFleet, type RunDeps, type Session } from "./session.ts";
import { InterruptedError, waitUntil } from "./wait.ts";

const STARTS_PER_SECOND = 75;
const LOOK_MS = 1_000;

/**
 * Runs the fleet until the signal aborts, then drains it.
 *
 * @returns whether every worker gave everything back and nothing was found lost
 */
export function runUntilStopped(options: StartOptions, deps: RunDeps): Promise<boolean> {
  const { connections, minutes, rate, seed } = options;
  const corpus = { connections, seconds: minutes * 60, rate, seed, liveShare: LIVE_SHARE };
  const all = { ...options, corpus, stream: true, queue: true, taskEvents: true };
  return withFleet(all, deps, async (session) => {
    const audit = liveAudit(session);
    session.audited = () => audit.result;
    try {
      await untilInterrupted(session, options, audit);
    } finally {
      await audit.stop();
    }
    const { fleet, monitor, view } = session;
    monitor.phase = "draining: every connection is given back";
    monitor.stopping = true;
    const drained = await drainTasks(session);
    const { lost, checked } = audit.result;
    view.say(
      `${drained ? "drained" : "NOT every worker drained"}; ` +
        `${count(fleet.board.total("MessagesStored"), "message")} stored, ${whole(lost)} lost of ${whole(checked)} looked up`,
    );
    const clean = drained && lost === 0;
    return { result: clean, removeLogs: clean };
  });
}

async function untilInterrupted(session: Session, options: StartOptions, audit: LiveAudit): Promise<void> {
  const { clock, corpus, fleet, monitor, signal } = session;
  try {
    monitor.phase = "starting workers";
    await startTasks(fleet, options.workers, session);
    monitor.phase = "starting connections";
    const requests = corpus.transcripts.map((transcript) => startRequest(fleet.upstream, transcript));
    monitor.started = requests.length;
    await startAll({ table: fleet.table, clock, signal }, requests, STARTS_PER_SECOND);
    audit.start();
    monitor.phase = "running, Ctrl-C ends it";
    const silent = async (): Promise<boolean> => (await fleet.upstream.status()).complete >= corpus.transcripts.length;
    await waitUntil(silent, { clock, signal, limitMs: Infinity, everyMs: LOOK_MS });
    monitor.phase = "all speeches have ended, Ctrl-C ends the fleet";
    await waitUntil(() => false, { clock, signal, limitMs: Infinity, everyMs: LOOK_MS });
  } catch (error) {
    if (!(error instanceof InterruptedError)) throw error;
  }
}

function liveAudit({ fleet, corpus, clock, logger }: Session): LiveAudit {
  const { connectionsTable, messagesTable } = fleet.stack;
  return new LiveAudit({
    dynamodb: fleet.table.client,
    connectionsTable,
    messagesTable,
    transcripts: corpus.transcripts,
    clock,
    logger,
  });
}
