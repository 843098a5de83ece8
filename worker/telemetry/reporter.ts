import type { Cancel, Clock } from "../../shared/clock.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import type { MetricSink } from "../../shared/metrics/sink.ts";
import type { Metrics, WorkerMetric } from "./metrics.ts";

export interface ReporterDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly sink: MetricSink;
  readonly intervalMs: number;
  readonly gauges: () => Partial<Record<WorkerMetric, number>>;
}

/** Publishes the worker's metrics at every interval, at once after the start and once more at the end. */
export class MetricsReporter {
  readonly #deps: ReporterDeps;
  #cancel: Cancel | undefined;
  #publishing: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: ReporterDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#publish();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    this.#publish();
    await this.#publishing;
  }

  #publish(): void {
    const { clock, gauges, intervalMs, logger, metrics, sink } = this.#deps;
    const data = metrics.take(gauges());
    this.#publishing = this.#publishing
      .then(() => sink.publish(data))
      .catch((error: unknown) => logger.warn(errorFields(error), "metrics could not be published"));
    if (!this.#stopped) this.#cancel = clock.after(intervalMs, () => this.#publish());
  }
}
