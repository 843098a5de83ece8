import { PutMetricDataCommand, type CloudWatchClient } from "@aws-sdk/client-cloudwatch";
import { METRIC_UNITS, METRICS_NAMESPACE } from "./names.ts";
import type { MetricDatum, MetricSink } from "./sink.ts";

/** PutMetricData takes at most 1,000 metrics a call and 150 distinct values a metric (CloudWatch API reference). */
const MAX_METRICS_PER_CALL = 1000;
const MAX_VALUES_PER_METRIC = 150;

/**
 * Publishes to CloudWatch with the service as the only dimension: a metric is charged for each dimension set, so a
 * dimension per worker would cost more than the workers' metrics are worth.
 */
export class CloudWatchSink implements MetricSink {
  readonly #client: CloudWatchClient;
  readonly #service: string;

  constructor(client: CloudWatchClient, service: string) {
    this.#client = client;
    this.#service = service;
  }

  async publish(data: readonly MetricDatum[]): Promise<void> {
    const metrics = data.flatMap(split).map((datum) => ({
      MetricName: datum.name,
      Unit: METRIC_UNITS[datum.name],
      Dimensions: [{ Name: "Service", Value: this.#service }],
      Values: [...datum.values],
      Counts: [...datum.counts],
    }));
    for (let i = 0; i < metrics.length; i += MAX_METRICS_PER_CALL) {
      await this.#client.send(
        new PutMetricDataCommand({
          Namespace: METRICS_NAMESPACE,
          MetricData: metrics.slice(i, i + MAX_METRICS_PER_CALL),
        }),
      );
    }
  }
}

function split(datum: MetricDatum): MetricDatum[] {
  const parts: MetricDatum[] = [];
  for (let i = 0; i < datum.values.length; i += MAX_VALUES_PER_METRIC) {
    parts.push({
      name: datum.name,
      values: datum.values.slice(i, i + MAX_VALUES_PER_METRIC),
      counts: datum.counts.slice(i, i + MAX_VALUES_PER_METRIC),
    });
  }
  return parts;
}
