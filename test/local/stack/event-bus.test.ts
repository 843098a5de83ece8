import assert from "node:assert/strict";
import path from "node:path";
import { describe, it } from "node:test";
import { silentLogger } from "../../../shared/logger.ts";
import { readServerlessFile } from "../../../local/serverless-file.ts";
import { invokeAsync } from "../../../local/triggers/async-invoke.ts";
import { createEventBus, type BusEvent } from "../../../local/triggers/event-bus.ts";
import { ManualClock } from "./manual-clock.ts";

const projectRoot = path.join(import.meta.dirname, "../../..");
const clusterArn = "arn:aws:ecs:us-east-1:000000000000:cluster/ws-fleet-local";

function taskEvent(detail: object): BusEvent {
  return {
    source: "aws.ecs",
    "detail-type": "ECS Task State Change",
    detail: {
      clusterArn,
      group: "service:ws-fleet-local",
      desiredStatus: "STOPPED",
      lastStatus: "STOPPED",
      containers: [{ name: "worker", lastStatus: "STOPPED", exitCode: 1 }],
      ...detail,
    },
  };
}

describe("the event rule of serverless.yml", () => {
  const rules = readServerlessFile({ projectRoot }).functions.flatMap(({ name, triggers }) =>
    triggers.flatMap((trigger) => (trigger.kind === "event" ? [{ functionName: name, pattern: trigger.pattern }] : [])),
  );
  const received: string[] = [];
  const bus = createEventBus(rules, { "Cluster.Arn": clusterArn }, (name) => received.push(name));

  it("hands a stopped or stopping task of this service to task-stopped", () => {
    assert.deepEqual(bus.put(taskEvent({})), ["task-stopped"]);
    assert.deepEqual(bus.put(taskEvent({ lastStatus: "DEPROVISIONING" })), ["task-stopped"]);
    assert.deepEqual(received, ["task-stopped", "task-stopped"]);
    assert.deepEqual(bus.stats, { events: 2, matched: 2 });
  });

  it("ignores everything else", () => {
    const others: [what: string, event: BusEvent][] = [
      ["a running task", taskEvent({ lastStatus: "RUNNING", desiredStatus: "RUNNING" })],
      ["a task that only drains", taskEvent({ lastStatus: "RUNNING" })],
      ["another service", taskEvent({ group: "service:other" })],
      ["a task outside any service", taskEvent({ group: undefined })],
      ["another cluster", taskEvent({ clusterArn: clusterArn.replace("ws-fleet", "other") })],
      ["another kind of event", { ...taskEvent({}), "detail-type": "ECS Deployment State Change" }],
      ["another source", { ...taskEvent({}), source: "sample" }],
    ];
    for (const [what, event] of others) assert.deepEqual(bus.put(event), [], what);
  });

  it("is refused when a reference in it has no local value", () => {
    assert.throws(
      () => createEventBus(rules, {}, () => undefined),
      /functions\.task-stopped\.eventBridge\.pattern\.detail\.clusterArn\.0: nothing local stands for the reference Cluster\.Arn/,
    );
  });
});

describe("an asynchronous invocation", () => {
  const run = async (retries: number, failures: number): Promise<number[]> => {
    const clock = new ManualClock(0);
    const abort = new AbortController();
    const timesMs: number[] = [];
    const invoke = (): Promise<unknown> => {
      timesMs.push(clock.monotonicMs());
      return timesMs.length <= failures ? Promise.reject(new Error("as asked")) : Promise.resolve(null);
    };
    const done = invokeAsync({ invoke, clock, logger: silentLogger, signal: abort.signal }, "f", {}, retries);
    await clock.advance(600_000);
    await done;
    assert.equal(clock.pendingTimers, 0);
    return timesMs;
  };

  it("is repeated after one and two minutes, and then dropped", async () => {
    assert.deepEqual(await run(2, 9), [0, 60_000, 180_000]);
  });

  it("is not repeated after a success, nor where no retries are wanted", async () => {
    assert.deepEqual(await run(2, 1), [0, 60_000]);
    assert.deepEqual(await run(0, 9), [0]);
  });
});
