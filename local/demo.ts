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
  const toStdout = options.json === "-";
  const output = toStdout ? process.stderr : process.stdout;
  const report = await runDemo(options, {
    env: process.env,
    output,
    clock: new SystemClock(),
    random: seededRandom(options.seed),
    signal,
  });
  output.write(`\n${reportText(report)}\n`);
  const json = `${JSON.stringify(report, null, 2)}\n`;
  if (toStdout) await written(process.stdout, json);
  else if (options.json !== undefined) await writeFile(options.json, json);
  return report.ok ? 0 : 1;
});

/** @throws when nobody reads it */
function written(stream: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error == null ? resolve() : reject(error)));
  });
}
