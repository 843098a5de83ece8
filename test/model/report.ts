import type { Run } from "./runs.ts";
import { explore, type Explored } from "./search.ts";

/** Explores one run's bounds and prints what was explored. */
export async function exploreAndPrint(run: Run, print: (line: string) => void, maxStates: number): Promise<Explored> {
  const startedAtMs = performance.now();
  const explored = await explore(run.bounds, { maxStates });
  const { states, transitions, depth, writes, longestDarkTicks, violation } = explored;
  const seconds = (performance.now() - startedAtMs) / 1000;
  const n = (count: number): string => count.toLocaleString("en");
  print(
    `${run.name}: ${n(states)} states, ${n(transitions)} transitions, depth ${depth}, ` +
      `${n(writes)} pairs of item and write, ` +
      `as wanted after at most ${String(longestDarkTicks ?? "?")} ticks without faults (${seconds.toFixed(1)} s)`,
  );
  if (violation !== undefined) {
    print(`  broken: ${violation.rule}`);
    for (const line of violation.history) print(`  ${line}`);
  }
  return explored;
}
