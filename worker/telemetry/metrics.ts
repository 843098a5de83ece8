import { WORKER_METRICS } from "../../shared/metrics/names.ts";
import { single, type MetricDatum } from "../../shared/metrics/sink.ts";

export type WorkerMetric = keyof typeof WORKER_METRICS;

/** What the worker's parts report; taken and reset once per interval. */
export class Metrics {
  readonly #counters = new Map<WorkerMetric, number>();
  readonly #observed = new Map<WorkerMetric, Map<number, number>>();
  readonly #minima = new Map<WorkerMetric, number>();

  count(name: WorkerMetric, n = 1): void {
    this.#counters.set(name, (this.#counters.get(name) ?? 0) + n);
  }

  /** One of many values, kept as a distribution. */
  observe(name: WorkerMetric, value: number): void {
    const bucket = rounded(value);
    const distribution = this.#observed.get(name) ?? new Map<number, number>();
    distribution.set(bucket, (distribution.get(bucket) ?? 0) + 1);
    this.#observed.set(name, distribution);
  }

  /** Only the smallest of the interval is kept. */
  minimum(name: WorkerMetric, value: number): void {
    this.#minima.set(name, Math.min(this.#minima.get(name) ?? Infinity, value));
  }

  /** Everything since the last call. Every counter is there, as zero where nothing happened: missing data blocks scaling. */
  take(gauges: Partial<Record<WorkerMetric, number>>): MetricDatum[] {
    const data: MetricDatum[] = [];
    for (const name of COUNTERS) data.push(single(name, this.#counters.get(name) ?? 0));
    for (const [name, value] of this.#minima) data.push(single(name, value));
    for (const [name, distribution] of this.#observed) {
      data.push({ name, values: [...distribution.keys()], counts: [...distribution.values()] });
    }
    for (const [name, value] of Object.entries(gauges)) data.push(single(name as WorkerMetric, value));
    this.#counters.clear();
    this.#observed.clear();
    this.#minima.clear();
    return data;
  }
}

const NOT_COUNTERS: ReadonlySet<string> = new Set<WorkerMetric>([
  "ActiveConnections",
  "OpenSockets",
  "RenewalLatency",
  "LeaseTimeToDeadline",
  "HandoverDelay",
  "ClockOffset",
]);
const COUNTERS = (Object.keys(WORKER_METRICS) as WorkerMetric[]).filter((name) => !NOT_COUNTERS.has(name));

/** Two significant digits: a distribution has at most 90 values per decade and tells percentiles to 5 %. */
function rounded(value: number): number {
  return value <= 0 ? 0 : Number(value.toPrecision(2));
}
