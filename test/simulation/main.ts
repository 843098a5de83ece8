import { runCommand } from "../../local/cli/command.ts";
import { simulateOptions, type SimulateOptions } from "./options.ts";
import { Progress } from "./progress.ts";
import { NAMED_RANGES, STATED } from "./scenario/ranges.ts";
import { simulate, type SimulationResult } from "./simulation.ts";
import { Summary } from "./summary.ts";

/** `npm run simulate`: seed after seed, until one fails, all are done, or the user has seen enough. */
await runCommand(async (argv, signal) => {
  const options = simulateOptions(argv);
  const { seeds, from, keepGoing } = options;
  const ranges = NAMED_RANGES.get(options.ranges) ?? STATED;
  const progress = new Progress(process.stderr, () => performance.now());
  const sum = new Summary();
  for (let seed = from; seed < from + seeds && !signal.aborted; seed++) {
    const result = await simulate({ seed, ranges }).catch((error: unknown) => {
      // A mistake of the simulation itself: where it happened is all that helps.
      throw new Error(`seed ${seed}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    });
    sum.add(result);
    if (result.violation !== undefined) {
      progress.clear();
      tellViolation(result, options);
      if (!keepGoing) break;
    }
    progress.tell(sum.seeds, seeds, sum.failed);
    // Between two seeds, so that a signal is seen.
    await new Promise((resolve) => setImmediate(resolve));
  }
  progress.clear();
  sum.tell(options);
  if (sum.failed > 0) return 1;
  return signal.aborted ? 130 : 0;
});

function tellViolation({ seed, violation, history }: SimulationResult, options: SimulateOptions): void {
  if (violation === undefined) return;
  const { rule, connectionId, atMs, text } = violation;
  console.log(`seed ${seed}: ${rule} of ${connectionId ?? "the fleet"} at ${(atMs / 1000).toFixed(3)} s: ${text}`);
  for (const line of history(options.history)) console.log(`  ${line}`);
  if (!options.keepGoing)
    console.log(`replay with: npm run simulate -- --seeds 1 --from ${seed} --ranges ${options.ranges}`);
}
