import { Command, Option } from "commander";
import { wholeNumber } from "../../local/cli/numbers.ts";
import { parseArguments } from "../../local/cli/usage.ts";
import { NAMED_RANGES, STATED } from "./scenario/ranges.ts";

export interface SimulateOptions {
  readonly seeds: number;
  readonly from: number;
  /** A key of {@link NAMED_RANGES}. */
  readonly ranges: string;
  readonly history: number;
  readonly keepGoing: boolean;
  readonly tally: boolean;
}

/** Seeds are used as the numbers that they are: all of a run must be exact. */
const MAX_SEED = Number.MAX_SAFE_INTEGER;
const MAX_SEEDS = 1_000_000_000;

/** @throws {UsageError} naming the option and the rule, or {HelpShown} */
export function simulateOptions(argv: readonly string[]): SimulateOptions {
  const command = new Command("npm run simulate --")
    .usage("[options]")
    .description(
      "Runs the whole fleet in virtual time under drawn faults, once per seed, and checks its invariants at every step. " +
        "Exits with 0 only if every seed keeps them; 1 if not; 2 for options that cannot work.",
    )
    .option("--seeds <n>", "how many seeds", wholeNumber(1, MAX_SEEDS), 100)
    .option("--from <seed>", "the first of them", wholeNumber(0, MAX_SEED - MAX_SEEDS), 1)
    .addOption(
      new Option("--ranges <name>", "what is drawn, and within which limits")
        .choices([...NAMED_RANGES.keys()])
        .default(STATED.name),
    )
    .option("--history <lines>", "lines about the connection that went wrong", wholeNumber(0, 1_000_000), 60)
    .option("--keep-going", "go on after a seed that fails", false)
    .option("--tally", "say how often what happened", false);
  return parseArguments(command, argv).opts<SimulateOptions>();
}
