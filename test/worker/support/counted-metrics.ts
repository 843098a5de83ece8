import { Metrics, type WorkerMetric } from "../../../worker/telemetry/metrics.ts";

/** Metrics whose counters can be read without being taken. */
export class CountedMetrics extends Metrics {
  readonly #counted = new Map<WorkerMetric, number>();

  override count(name: WorkerMetric, n = 1): void {
    super.count(name, n);
    this.#counted.set(name, this.counted(name) + n);
  }

  counted(name: WorkerMetric): number {
    return this.#counted.get(name) ?? 0;
  }
}
