import { setMaxListeners } from "node:events";
import type { Clock } from "../../shared/clock.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import { buildCorpus, type Corpus, type CorpusOptions } from "../upstream/corpus.ts";
import { loadSpeeches } from "../upstream/speeches.ts";
import { startView, type Output, type View } from "../view/view.ts";
import type { PlayedFault } from "./fault-player.ts";
import { startFleet, type Fleet, type FleetOptions } from "./fleet.ts";
import { createRunFolder, type RunFolder } from "./folder.ts";
import { Monitor, type MonitorDeps } from "./monitor.ts";
import { runnerLogger } from "./runner-logger.ts";
import { EndpointError } from "../stack/server.ts";
import { PartLostError, pause } from "./wait.ts";

/** What a command gets from its composition root. */
export interface RunDeps {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly output: Output;
  readonly clock: Clock;
  /** Aborts when the user wants the end. */
  readonly signal: AbortSignal;
}

/** A running fleet with something to say, and all that belongs to a run of it. */
export interface Session {
  readonly fleet: Fleet;
  readonly corpus: Corpus;
  readonly folder: RunFolder;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Aborts when the user wants the end, or a part is lost. */
  readonly signal: AbortSignal;
  readonly monitor: Monitor;
  readonly view: View;
  /** Faults played so far, for the view. */
  faults: () => readonly PlayedFault[];
  audited: MonitorDeps["audited"];
}

export interface SessionOptions extends Omit<FleetOptions, "env" | "folder" | "clock" | "logger" | "onLost"> {
  readonly corpus: CorpusOptions;
}

/** A request that fails because a server has just died may fail before its end is known. */
const LOSS_KNOWN_MS = 1_000;
/** Share of the connections whose feed cannot replay. */
export const LIVE_SHARE = 0.2;

/**
 * Starts everything but the tasks, runs `body`, and ends everything, whatever happens: nothing is left running. When a
 * part is lost, `body` is not waited for.
 *
 * @param body tells whether the logs may go
 * @throws {PartLostError}, and what `body` throws
 */
export async function withFleet<T>(
  options: SessionOptions,
  { env, output, clock, signal }: RunDeps,
  body: (session: Session) => Promise<{ readonly result: T; readonly removeLogs: boolean }>,
): Promise<T> {
  const folder = await createRunFolder();
  const logger = runnerLogger(folder.runnerLog);
  const late: Pick<Session, "faults" | "audited"> = { faults: () => [], audited: () => undefined };
  const monitor = new Monitor({ clock, logger, faults: () => late.faults(), audited: () => late.audited() });
  const view = startView({ output, clock, snapshot: () => monitor.snapshot() });
  const lost = new AbortController();
  const onLost = (what: string): void => {
    logger.error({ what }, "a part of the run is lost");
    lost.abort(new PartLostError(what));
  };
  let fleet: Fleet | undefined;
  let removeLogs = false;
  try {
    const corpus = buildCorpus(loadSpeeches(), withOwnIds(options.corpus, env));
    fleet = await startFleet({ ...options, env, folder, clock, logger, onLost });
    await fleet.upstream.configure(corpus.options);
    monitor.watch(fleet);
    const either = AbortSignal.any([signal, lost.signal]);
    // Each wait of the run listens for its own time.
    setMaxListeners(0, either, lost.signal);
    const session = Object.assign(late, { fleet, corpus, folder, clock, logger, signal: either, monitor, view });
    const done = await unlessLost(body(session), lost.signal);
    removeLogs = done.removeLogs;
    return done.result;
  } catch (caught) {
    if (fleet !== undefined && !signal.aborted) await pause(LOSS_KNOWN_MS, clock, lost.signal).catch(() => undefined);
    const error: unknown = lost.signal.aborted ? lost.signal.reason : caught;
    // Nothing ran where an endpoint was refused: its log would tell no more than the message.
    removeLogs = error instanceof EndpointError || (signal.aborted && !lost.signal.aborted);
    logger.error({ ...errorFields(error), stack: error instanceof Error ? error.stack : undefined }, "the run failed");
    throw error;
  } finally {
    monitor.phase = "ending everything";
    monitor.stop();
    await fleet?.close();
    view.stop();
    if (removeLogs) await folder.remove();
    else {
      await folder.keep();
      output.write(`logs and journals are kept in ${folder.root} for a day\n`);
    }
  }
}

/** What the run brings, or at once why it is over. */
async function unlessLost<T>(running: Promise<T>, lost: AbortSignal): Promise<T> {
  const loss = new Promise<never>((_, reject) => {
    const tell = (): void => reject(lost.reason as PartLostError);
    if (lost.aborted) tell();
    else lost.addEventListener("abort", tell, { once: true });
  });
  // Whichever comes second is heard by nobody.
  running.catch(() => undefined);
  loss.catch(() => undefined);
  return await Promise.race([running, loss]);
}

/** Tables that outlive a run must not mix two of them. */
function withOwnIds(corpus: CorpusOptions, env: RunDeps["env"]): CorpusOptions {
  if ((env["AWS_ENDPOINT_URL_DYNAMODB"] ?? "") === "") return corpus;
  return { ...corpus, idPrefix: `talk-${Date.now().toString(36)}` };
}
