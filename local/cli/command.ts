import { InterruptedError } from "../run/wait.ts";
import { EndpointError } from "../stack/server.ts";
import { HelpShown, UsageError } from "./usage.ts";

/** Exit codes of the commands. */
export const EXIT = {
  ok: 0,
  /** The audit found something, or the run could not be done. */
  failed: 1,
  usage: 2,
  /** As a shell tells of a program that Ctrl-C ended. */
  interrupted: 130,
  /** As a shell tells of a program whose output nobody reads any more. */
  outputClosed: 141,
} as const;

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** npm passes on what the terminal has sent already, and a terminal that closes sends more than one signal. */
const SAME_SIGNAL_MS = 300;

/**
 * Runs a command and ends the process with its exit code. The first signal asks it to end in good order, and so does an
 * output that nobody reads any more; another signal ends the process at once, and all its children with it.
 */
export async function runCommand(
  command: (argv: readonly string[], signal: AbortSignal) => Promise<number>,
): Promise<never> {
  const abort = new AbortController();
  let firstAtMs: number | undefined;
  for (const name of SIGNALS) {
    process.on(name, () => {
      const nowMs = performance.now();
      firstAtMs ??= nowMs;
      abort.abort();
      if (nowMs - firstAtMs > SAME_SIGNAL_MS) process.exit(EXIT.interrupted);
    });
  }
  const output = { closed: false };
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", () => {
      output.closed = true;
      abort.abort();
    });
  }
  try {
    process.exit(await command(process.argv.slice(2), abort.signal));
  } catch (error) {
    if (error instanceof HelpShown) process.exit(EXIT.ok);
    if (error instanceof UsageError || error instanceof EndpointError) {
      process.stderr.write(`${error.message}\n(--help lists the options)\n`);
      process.exit(EXIT.usage);
    }
    if (error instanceof InterruptedError) {
      process.stderr.write("interrupted: everything was ended\n");
      process.exit(output.closed ? EXIT.outputClosed : EXIT.interrupted);
    }
    process.stderr.write(`${described(error)}\n`);
    process.exit(EXIT.failed);
  }
}

/** With what caused it: where it happened is in the run's log. */
function described(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${described(error.cause)}`;
}
