import { fork, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Logger } from "../../shared/logger.ts";

/** Time for a child to clean up after its channel was closed, before it is killed. */
const STOP_GRACE_MS = 5_000;
/** Starting under load takes a second or two; a server that needs longer will not come. */
const READY_TIMEOUT_MS = 30_000;

export interface ChildOptions {
  readonly name: string;
  /** The entry module; it reports `{ ready }` or `{ failed }` once, and ends when its channel closes. */
  readonly module: URL;
  /** Plain data for the child, read there with {@link childInput}. */
  readonly input: unknown;
  readonly env: Record<string, string>;
  readonly logger: Logger;
}

export interface StartedChild {
  readonly process: ChildProcess;
  readonly pid: number;
  /** What the child reported when it was ready. */
  readonly ready: unknown;
  /** Settles when the process has ended, however that came, with how it did: `signal SIGKILL`, or its own words. */
  readonly ended: Promise<string>;
  /** Asks the child to end and waits until it has; repeatable. */
  stop(): Promise<void>;
}

/**
 * Starts a Node process that lives no longer than this one. The tie is the IPC channel: the operating system closes it
 * even when this process is killed outright. The child has a process group of its own, so that a Ctrl-C in the terminal
 * reaches the runner alone and servers are still there while it drains.
 */
export async function startChild(options: ChildOptions): Promise<StartedChild> {
  const { name, logger } = options;
  const child = fork(fileURLToPath(options.module), [JSON.stringify(options.input ?? null)], {
    env: options.env,
    detached: true,
    execArgv: ["--disable-warning=ExperimentalWarning"],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  if (child.stdout !== null) logLines(child.stdout, (line) => logger.debug({ child: name, line }, "child output"));
  if (child.stderr !== null) logLines(child.stderr, (line) => logger.warn({ child: name, line }, "child error output"));

  const ended = new Promise<string>((resolve) => {
    let own: string | undefined;
    child.on("message", (message: { ending?: string }) => (own ??= message.ending));
    child.once("exit", (code, signal) => resolve(own ?? howEnded(code, signal)));
    child.once("error", (error) => resolve(error.message));
  });
  const stop = async (): Promise<void> => {
    if (child.connected) child.disconnect();
    const timer = setTimeout(() => {
      logger.warn({ child: name, pid: child.pid }, "child did not end in time and is killed");
      child.kill("SIGKILL");
    }, STOP_GRACE_MS);
    await ended;
    clearTimeout(timer);
  };
  try {
    const ready = await firstReport(child, name);
    logger.debug({ child: name, pid: child.pid, ready }, "child is ready");
    return { process: child, pid: child.pid ?? 0, ready, ended, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

export function howEnded(code: number | null, signal: string | null): string {
  return code === null ? `signal ${signal}` : `exit code ${code}`;
}

function logLines(stream: Readable, log: (line: string) => void): void {
  createInterface({ input: stream }).on("line", log);
}

function firstReport(child: ChildProcess, name: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      child.off("message", onMessage).off("exit", onExit).off("error", onError);
      act();
    };
    const onMessage = (message: unknown): void => {
      const report = message as { ready?: unknown; failed?: string };
      if (report.failed !== undefined) settle(() => reject(new Error(`${name} did not start: ${report.failed}`)));
      else settle(() => resolve(report.ready));
    };
    const onExit = (code: number | null, signal: string | null): void =>
      settle(() => reject(new Error(`${name} ended before it was ready (${howEnded(code, signal)})`)));
    const onError = (error: Error): void => settle(() => reject(new Error(`${name} did not start: ${error.message}`)));
    const timer = setTimeout(
      () => settle(() => reject(new Error(`${name} was not ready within ${READY_TIMEOUT_MS} ms`))),
      READY_TIMEOUT_MS,
    );
    child.on("message", onMessage).on("exit", onExit).on("error", onError);
  });
}
