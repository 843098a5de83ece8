/**
 * Whether every state finds its way back without further faults.
 *
 * Stronger than "a good state can be reached": **every** calm way from **every** state leads to a settled one. That is so
 * exactly when the calm steps among unsettled states have neither a circle nor an end, and is found out backwards, from
 * the settled states on.
 */
export class Recovery {
  readonly #from: number[] = [];
  readonly #to: number[] = [];
  readonly #settled: number[] = [];

  /** A calm step. A tick is marked by its sign: ids are not negative. */
  edge(from: number, to: number, tick: boolean): void {
    this.#from.push(tick ? ~from : from);
    this.#to.push(to);
  }

  settled(id: number): void {
    this.#settled.push(id);
  }

  /** A state that may stay dark for ever, the nearest of all, and otherwise the longest that any stays so. */
  judge(states: number): { dark: number | undefined; longestTicks: number } {
    const left = new Int32Array(states);
    const starts = new Int32Array(states + 1);
    const source = (edge: number): number => {
      const from = this.#from[edge] ?? 0;
      return from < 0 ? ~from : from;
    };
    const edges = this.#to.length;
    for (let edge = 0; edge < edges; edge++) {
      left[source(edge)]!++;
      starts[(this.#to[edge] ?? 0) + 1]!++;
    }
    for (let i = 0; i < states; i++) starts[i + 1]! += starts[i] ?? 0;
    const incoming = new Int32Array(edges);
    const filled = starts.slice();
    for (let edge = 0; edge < edges; edge++) incoming[filled[this.#to[edge] ?? 0]!++] = edge;

    const done = new Uint8Array(states);
    const ticks = new Int32Array(states);
    const queue = [...this.#settled];
    for (const id of queue) done[id] = 1;
    let longestTicks = 0;
    for (let at = 0; at < queue.length; at++) {
      const id = queue[at] ?? 0;
      longestTicks = Math.max(longestTicks, ticks[id] ?? 0);
      for (let i = starts[id] ?? 0; i < (starts[id + 1] ?? 0); i++) {
        const edge = incoming[i] ?? 0;
        const from = source(edge);
        if (done[from] === 1) continue;
        const viaThis = (ticks[id] ?? 0) + ((this.#from[edge] ?? 0) < 0 ? 1 : 0);
        ticks[from] = Math.max(ticks[from] ?? 0, viaThis);
        if (--left[from]! > 0) continue;
        done[from] = 1;
        queue.push(from);
      }
    }
    const dark = done.indexOf(0);
    return { dark: dark < 0 ? undefined : dark, longestTicks };
  }
}
