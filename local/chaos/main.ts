import { writeFile } from "node:fs/promises";
import { SystemClock } from "../../shared/clock.ts";
import { runCommand } from "../cli/command.ts";
import { chaosOptions } from "./options.ts";
import { chaosText } from "./report.ts";
import { runChaos } from "./run.ts";

/** `npm run chaos`: the fleet on this machine, with everything that can go wrong at once, and an audit. */
await runCommand(async (argv, signal) => {
  const options = chaosOptions(argv, process.env);
  const toStdout = options.json === "-";
  const output = toStdout ? process.stderr : process.stdout;
  const report = await runChaos(options, {
    env: process.env,
    output,
    clock: new SystemClock(),
    signal,
  });
  output.write(`\n${chaosText(report)}\n`);
  const json = `${JSON.stringify(report, null, 2)}\n`;
  if (toStdout) process.stdout.write(json);
  else if (options.json !== undefined) await writeFile(options.json, json);
  return report.ok ? 0 : 1;
});
