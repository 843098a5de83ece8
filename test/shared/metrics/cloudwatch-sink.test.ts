import { CloudWatchClient, type PutMetricDataCommandInput } from "@aws-sdk/client-cloudwatch";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CloudWatchSink } from "../../../shared/metrics/cloudwatch-sink.ts";
import { METRIC_UNITS, type MetricName } from "../../../shared/metrics/names.ts";
import { single, type MetricDatum } from "../../../shared/metrics/sink.ts";

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

/** The real client and the real command, caught where it would be sent. */
function catching(): { sink: CloudWatchSink; calls: PutMetricDataCommandInput[]; failWith: (error: Error) => void } {
  const calls: PutMetricDataCommandInput[] = [];
  let failure: Error | undefined;
  const client = new CloudWatchClient({ region: "us-east-1" });
  client.middlewareStack.add(
    () => (args) => {
      calls.push(args.input as PutMetricDataCommandInput);
      if (failure !== undefined) return Promise.reject(failure);
      return Promise.resolve({ response: {}, output: { $metadata: {} } });
    },
    { step: "initialize", priority: "high" },
  );
  return { sink: new CloudWatchSink(client, "workers"), calls, failWith: (error) => (failure = error) };
}

describe("CloudWatchSink", () => {
  it("publishes name, unit and values with the service as the only dimension", async () => {
    const { sink, calls } = catching();
    await sink.publish([single("ActiveConnections", 0), { name: "RenewalLatency", values: [3.5, 12], counts: [4, 1] }]);
    const Dimensions = [{ Name: "Service", Value: "workers" }];
    assert.deepEqual(calls, [
      {
        Namespace: "WsFleet",
        MetricData: [
          { MetricName: "ActiveConnections", Unit: "Count", Dimensions, Values: [0], Counts: [1] },
          { MetricName: "RenewalLatency", Unit: "Milliseconds", Dimensions, Values: [3.5, 12], Counts: [4, 1] },
        ],
      },
    ]);
  });

  it("calls nobody for nothing", async () => {
    const { sink, calls } = catching();
    await sink.publish([]);
    await sink.publish([{ name: "RenewalLatency", values: [], counts: [] }]);
    assert.deepEqual(calls, []);
  });

  for (const [distinct, parts] of [
    [150, [150]],
    [151, [150, 1]],
    [450, [150, 150, 150]],
    [1000, [150, 150, 150, 150, 150, 150, 100]],
  ] as const) {
    it(`splits ${distinct} distinct values of one metric at 150, each with its count`, async () => {
      const { sink, calls } = catching();
      const values = range(distinct).map((i) => i + 0.5);
      const counts = range(distinct).map((i) => i + 1);
      await sink.publish([{ name: "RenewalLatency", values, counts }]);
      assert.equal(calls.length, 1);
      const data = calls[0]!.MetricData!;
      assert.deepEqual(
        data.map((datum) => datum.Values!.length),
        parts,
      );
      assert.deepEqual(
        data.flatMap((datum) => datum.Values!),
        values,
      );
      assert.deepEqual(
        data.flatMap((datum) => datum.Counts!),
        counts,
      );
    });
  }

  for (const [metrics, calls] of [
    [1000, [1000]],
    [1001, [1000, 1]],
    [2500, [1000, 1000, 500]],
  ] as const) {
    it(`sends ${metrics} metrics in calls of at most 1,000`, async () => {
      const caught = catching();
      const names = Object.keys(METRIC_UNITS) as MetricName[];
      const data: MetricDatum[] = range(metrics).map((i) => single(names[i % names.length]!, i));
      await caught.sink.publish(data);
      assert.deepEqual(
        caught.calls.map((call) => call.MetricData!.length),
        calls,
      );
      assert.deepEqual(
        caught.calls.flatMap((call) => call.MetricData!.map((datum) => datum.Values![0])),
        range(metrics),
      );
    });
  }

  it("throws what the call throws", async () => {
    const { sink, failWith } = catching();
    failWith(new Error("throttled"));
    await assert.rejects(sink.publish([single("LeaseLost", 1)]), /throttled/);
  });
});
