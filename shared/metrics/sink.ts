import type { MetricName } from "./names.ts";

/** Several observations of one metric in one interval. */
export interface MetricDatum {
  readonly name: MetricName;
  /** Distinct values with how often each was seen; same length. */
  readonly values: readonly number[];
  readonly counts: readonly number[];
}

/** Where metrics go. CloudWatch when deployed, an HTTP endpoint on loopback locally. */
export interface MetricSink {
  /** @throws when the metrics could not be handed over; the caller logs it and goes on. */
  publish(data: readonly MetricDatum[]): Promise<void>;
}

/** A datum with a single observation. */
export function single(name: MetricName, value: number): MetricDatum {
  return { name, values: [value], counts: [1] };
}
