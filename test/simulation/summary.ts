import { Tally } from "./engine/tally.ts";
import type { SimulateOptions } from "./options.ts";
import type { SimulationResult } from "./simulation.ts";

/** Of all seeds that were run. */
export class Summary {
  seeds = 0;
  failed = 0;
  #simulatedMs = 0;
  #events = 0;
  readonly #happened = new Tally();
  readonly #handOversMs: number[] = [];
  readonly #startedAtMs = performance.now();

  add({ simulatedMs, events, tally, handOverMs, violation }: SimulationResult): void {
    this.seeds++;
    if (violation !== undefined) this.failed++;
    this.#simulatedMs += simulatedMs;
    this.#events += events;
    this.#happened.addAll(tally);
    if (handOverMs !== undefined) this.#handOversMs.push(handOverMs);
  }

  tell({ seeds, tally }: SimulateOptions): void {
    if (tally) {
      for (const [what, n] of [...this.#happened.counts].sort()) console.log(`${String(n).padStart(9)}  ${what}`);
    }
    const hours = (this.#simulatedMs / 3_600_000).toFixed(2);
    const seconds = ((performance.now() - this.#startedAtMs) / 1000).toFixed(1);
    console.log(
      `${this.failed} of ${this.seeds} ${this.seeds === 1 ? "seed" : "seeds"} failed` +
        `${this.seeds < seeds ? ` (${seeds} were asked for)` : ""}; ` +
        `${this.#events.toLocaleString("en-US")} events in ${hours} simulated hours took ${seconds} s`,
    );
    if (this.#handOversMs.length === 0) return;
    this.#handOversMs.sort((a, b) => a - b);
    console.log(
      `hand-overs in good weather: p50 ${this.#at(0.5)} s, p99 ${this.#at(0.99)} s of ${this.#handOversMs.length}`,
    );
  }

  #at(share: number): string {
    return ((this.#handOversMs[Math.ceil(share * this.#handOversMs.length) - 1] ?? NaN) / 1000).toFixed(2);
  }
}
