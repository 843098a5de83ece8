/** Nearest-rank percentiles of a sample; null when there is nothing to measure. */
export interface Percentiles {
  readonly n: number;
  readonly p50: number | null;
  readonly p99: number | null;
  readonly max: number | null;
}

/** @throws if a value is not a finite number: it would sort to a place that means nothing */
export function percentiles(values: readonly number[]): Percentiles {
  const wrong = values.find((value) => !Number.isFinite(value));
  if (wrong !== undefined) throw new RangeError(`every value must be a finite number, got ${wrong}`);
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number | null => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
  return { n: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}
