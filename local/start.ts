import { SystemClock } from "../shared/clock.ts";
import { runCommand } from "./cli/command.ts";
import { startOptions } from "./cli/start-options.ts";
import { runUntilStopped } from "./run/start-run.ts";

/** `npm start`: everything on this machine, shown live, until Ctrl-C. */
await runCommand(async (argv, signal) => {
  const options = startOptions(argv, process.env);
  const clean = await runUntilStopped(options, {
    env: process.env,
    output: process.stdout,
    clock: new SystemClock(),
    signal,
  });
  return clean ? 0 : 1;
});
