interface Sample {
  readonly atMs: number;
  readonly total: number;
}

/** How fast a total grows, averaged over the last window: what is told in steps would otherwise jump. */
export class AverageRate {
  readonly #windowMs: number;
  #samples: Sample[] = [];

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  add(atMs: number, total: number): void {
    this.#samples.push({ atMs, total });
    const fromMs = atMs - this.#windowMs;
    // The last one before the window stays: the total at the window's begin lies between it and the next.
    const first = this.#samples.findLastIndex((sample) => sample.atMs <= fromMs);
    if (first > 0) this.#samples = this.#samples.slice(first);
  }

  /** 0 before there are two samples. */
  get perSecond(): number {
    const [first, second, last] = [this.#samples[0], this.#samples[1], this.#samples.at(-1)];
    if (first === undefined || second === undefined || last === undefined) return 0;
    const fromMs = Math.max(first.atMs, last.atMs - this.#windowMs);
    const share = second.atMs === first.atMs ? 0 : (fromMs - first.atMs) / (second.atMs - first.atMs);
    const from = first.total + share * (second.total - first.total);
    return last.atMs === fromMs ? 0 : ((last.total - from) * 1000) / (last.atMs - fromMs);
  }
}
