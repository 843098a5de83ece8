import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { WORKER_METRICS } from "../../../shared/metrics/names.ts";
import type { MetricDatum } from "../../../shared/metrics/sink.ts";
import { silentLogger } from "../../../shared/logger.ts";
import { Metrics } from "../../../worker/telemetry/metrics.ts";
import { MetricsReporter } from "../../../worker/telemetry/reporter.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const valuesOf = (data: readonly MetricDatum[], name: string): readonly number[] | undefined =>
  data.find((datum) => datum.name === name)?.values;

describe("the worker's metrics", () => {
  it("have every counter, as zero where nothing happened, and start anew when they are taken", () => {
    const metrics = new Metrics();
    metrics.count("LeaseLost", 2);
    metrics.count("LeaseLost");
    const first = metrics.take({ ActiveConnections: 7 });
    assert.deepEqual(valuesOf(first, "LeaseLost"), [3]);
    assert.deepEqual(valuesOf(first, "LeaseFenced"), [0]);
    assert.deepEqual(valuesOf(first, "ActiveConnections"), [7]);
    assert.deepEqual(valuesOf(metrics.take({}), "LeaseLost"), [0]);
  });

  it("know no name that nobody publishes", () => {
    const metrics = new Metrics();
    metrics.minimum("LeaseTimeToDeadline", 1);
    metrics.observe("RenewalLatency", 1);
    metrics.observe("HandoverDelay", 1);
    const names = metrics.take({ ActiveConnections: 0, OpenSockets: 0, ClockOffset: 0 }).map(({ name }) => name);
    assert.deepEqual(names.sort(), Object.keys(WORKER_METRICS).sort());
  });

  it("keep distributions small, whatever is observed, with percentiles within 5 %", () => {
    const metrics = new Metrics();
    for (let ms = 0; ms <= 3000; ms += 0.37) metrics.observe("RenewalLatency", ms);
    const datum = metrics.take({}).find(({ name }) => name === "RenewalLatency");
    assert.ok(datum !== undefined);
    const { values, counts } = datum;
    const decade = values.filter((value) => value >= 100 && value < 1000);
    assert.ok(decade.length <= 90, `${decade.length} values from 100 ms to 1 s`);
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      Math.floor(3000 / 0.37) + 1,
    );
    for (let ms = 10; ms < 3000; ms *= 1.07) {
      const nearest = Math.min(...values.map((value) => Math.abs(value - ms)));
      assert.ok(nearest / ms <= 0.05, `${ms}`);
    }
  });

  it("keep only the smallest of the minima", () => {
    const metrics = new Metrics();
    for (const ms of [900, 300, 700]) metrics.minimum("LeaseTimeToDeadline", ms);
    assert.deepEqual(valuesOf(metrics.take({}), "LeaseTimeToDeadline"), [300]);
  });
});

describe("the reporter", () => {
  const reporting = (publish: (data: readonly MetricDatum[]) => Promise<void>) => {
    const clock = new VirtualClock();
    const metrics = new Metrics();
    const reporter = new MetricsReporter({
      clock,
      logger: silentLogger,
      metrics,
      sink: { publish },
      intervalMs: 30_000,
      gauges: () => ({ ActiveConnections: 1 }),
    });
    return { clock, metrics, reporter };
  };

  it("publishes at once, at every interval, and once more at the end with what was counted last", async () => {
    const published: (readonly MetricDatum[])[] = [];
    const { clock, metrics, reporter } = reporting((data) => {
      published.push(data);
      return Promise.resolve();
    });
    reporter.start();
    await clock.advance(60_000);
    assert.equal(published.length, 3);
    metrics.count("LeaseLost");
    await reporter.stop();
    assert.equal(published.length, 4);
    assert.deepEqual(valuesOf(published[3]!, "LeaseLost"), [1]);
    assert.equal(clock.pendingTimers, 0);
  });

  it("goes on when metrics cannot be handed over", async () => {
    let attempts = 0;
    const { clock, reporter } = reporting(() => {
      attempts++;
      return Promise.reject(new Error("no credentials"));
    });
    reporter.start();
    await clock.advance(90_000);
    assert.equal(attempts, 4);
    await reporter.stop();
    assert.equal(attempts, 5);
  });
});
