import { Command, InvalidArgumentError } from "commander";
import { exploreAndPrint } from "./report.ts";
import { LONG_RUNS, SHORT_RUNS } from "./runs.ts";

const { maxStates, only } = new Command("model")
  .description(
    "Explores every order of events of two workers and one connection within some bounds, one after another.",
  )
  .option("--max-states <n>", "give a run up, as a failure, beyond so many states", whole, 8_000_000)
  .option("--only <text>", "only the runs with this text in their name", "")
  .parse()
  .opts<{ maxStates: number; only: string }>();

const runs = [...SHORT_RUNS, ...LONG_RUNS].filter(({ name }) => name.includes(only));
if (runs.length === 0) throw new Error(`--only: no run has ${JSON.stringify(only)} in its name`);
let states = 0;
let transitions = 0;
let failed = 0;
for (const run of runs) {
  try {
    const explored = await exploreAndPrint(run, (line) => console.log(line), maxStates);
    states += explored.states;
    transitions += explored.transitions;
    if (explored.violation !== undefined) failed++;
  } catch (error) {
    failed++;
    console.log(`${run.name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
console.log(
  `${runs.length - failed} of ${runs.length} runs hold: ${states.toLocaleString("en")} states, ` +
    `${transitions.toLocaleString("en")} transitions`,
);
process.exitCode = failed === 0 ? 0 : 1;

function whole(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError("must be a whole number from 1 on");
  return Number(text);
}
