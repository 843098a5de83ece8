import { writeFile } from "node:fs/promises";
import { SystemClock } from "../shared/clock.ts";
import { demoOptions } from "./cli/demo-options.ts";
import { runCommand } from "./cli/command.ts";
import { reportText } from "./report/text.ts";
import { runDemo } from "./run/demo-run.ts";
import { seededRandom } from "./run/seeded-random.ts";

/** `npm run demo`: everything on this machine, with faults, audited, without interaction. */
await runCommand(async (argv, signal) => {
  const options = demoOptions(argv, process.env);
  const report = await runDemo(options, {
    env: process.env,
    output: process.stdout,
    clock: new SystemClock(),
    random: seededRandom(options.seed),
    signal,
  });
  process.stdout.write(`\n${reportText(report)}\n`);
  if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`);
  return report.ok ? 0 : 1;
});
