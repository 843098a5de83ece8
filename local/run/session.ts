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
  readonly signal: AbortSignal;
  readonly monitor: Monitor;
  readonly view: View;
  /** Faults played so far, for the view. */
  faults: () => readonly PlayedFault[];
  audited: MonitorDeps["audited"];
}

export interface SessionOptions extends Omit<FleetOptions, "env" | "folder" | "clock" | "logger"> {
  readonly corpus: CorpusOptions;
}

/** Share of the connections whose feed cannot replay. */
export const LIVE_SHARE = 0.2;

/**
 * Starts everything but the tasks, runs `body`, and ends everything, whatever happens: nothing is left running.
 *
 * @param body tells whether the logs may go
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
  let fleet: Fleet | undefined;
  let removeLogs = false;
  try {
    const corpus = buildCorpus(loadSpeeches(), withOwnIds(options.corpus, env));
    fleet = await startFleet({ ...options, env, folder, clock, logger });
    await fleet.upstream.configure(corpus.options);
    monitor.watch(fleet);
    const session = Object.assign(late, { fleet, corpus, folder, clock, logger, signal, monitor, view });
    const done = await body(session);
    removeLogs = done.removeLogs;
    return done.result;
  } catch (error) {
    // Nothing ran where an endpoint was refused: its log would tell no more than the message.
    removeLogs = signal.aborted || error instanceof EndpointError;
    logger.error({ ...errorFields(error), stack: error instanceof Error ? error.stack : undefined }, "the run failed");
    throw error;
  } finally {
    monitor.stop();
    view.stop();
    await fleet?.close();
    if (removeLogs) await folder.remove();
    else output.write(`logs and journals are kept in ${folder.root}\n`);
  }
}

/** Tables that outlive a run must not mix two of them. */
function withOwnIds(corpus: CorpusOptions, env: RunDeps["env"]): CorpusOptions {
  if ((env["AWS_ENDPOINT_URL_DYNAMODB"] ?? "") === "") return corpus;
  return { ...corpus, idPrefix: `talk-${Date.now().toString(36)}` };
}
