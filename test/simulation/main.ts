import { Command, InvalidArgumentError } from "commander";
import { Tally } from "./engine/tally.ts";
import { simulate } from "./simulation.ts";

interface Options {
  readonly seeds: number;
  readonly from: number;
  readonly history: number;
  readonly keepGoing: boolean;
  readonly tally: boolean;
}

const program = new Command("simulate")
  .description("Runs the whole fleet under drawn faults, once per seed, and checks its invariants at every step.")
  .option("--seeds <n>", "how many seeds", whole, 100)
  .option("--from <seed>", "the first of them", whole, 1)
  .option("--history <lines>", "lines about the connection that went wrong", whole, 60)
  .option("--keep-going", "go on after a seed that fails", false)
  .option("--tally", "say how often what happened", false)
  .parse();
const { seeds, from, history, keepGoing, tally } = program.opts<Options>();

let failed = 0;
let simulatedMs = 0;
let events = 0;
const happened = new Tally();
const handOversMs: number[] = [];
const startedAtMs = performance.now();
for (let seed = from; seed < from + seeds; seed++) {
  const result = await simulate({ seed });
  simulatedMs += result.simulatedMs;
  events += result.events;
  happened.addAll(result.tally);
  if (result.handOverMs !== undefined) handOversMs.push(result.handOverMs);
  if (result.violation === undefined) continue;
  failed++;
  const { rule, connectionId, atMs, text } = result.violation;
  console.log(`seed ${seed}: ${rule} of ${connectionId ?? "the fleet"} at ${(atMs / 1000).toFixed(3)} s: ${text}`);
  for (const line of result.history(history)) console.log(`  ${line}`);
  if (!keepGoing) {
    console.log(`replay with: npm run simulate -- --seeds 1 --from ${seed}`);
    break;
  }
}
handOversMs.sort((a, b) => a - b);
const percentile = (share: number): string =>
  ((handOversMs[Math.ceil(share * handOversMs.length) - 1] ?? NaN) / 1000).toFixed(2);
if (tally) for (const [what, n] of [...happened.counts].sort()) console.log(`${String(n).padStart(9)}  ${what}`);
const seconds = (performance.now() - startedAtMs) / 1000;
console.log(
  `${failed} failed; ${events} events in ${(simulatedMs / 3_600_000).toFixed(2)} simulated hours took ${seconds.toFixed(1)} s`,
);
console.log(`hand-overs in good weather: p50 ${percentile(0.5)} s, p99 ${percentile(0.99)} s of ${handOversMs.length}`);
process.exitCode = failed === 0 ? 0 : 1;

function whole(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("must be a whole number");
  return Number(text);
}
