import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { notOurs, notProvenDead, parseTaskStateChange, taskIdOf } from "../../../functions/core/task-state-change.ts";
import { taskStateChange } from "../../../local/ecs/task-event.ts";
import { exitCodeOf, newTask, taskMetadata, type Task, type TaskTemplate } from "../../../local/ecs/task.ts";
import { taskIdentity } from "../../../worker/identity.ts";
import { startEndpoints } from "../../../local/run/endpoints.ts";
import { MetricsBoard } from "../../../local/run/metrics-board.ts";
import { HttpRunningTasks } from "../../../shared/ecs/running-tasks.ts";
import { HttpSink } from "../../../shared/metrics/http-sink.ts";
import { crashedTask } from "../../functions/support/ecs-events.ts";

const NOW_MS = Date.UTC(2026, 0, 23, 17, 57, 58, 103);
const template: TaskTemplate = {
  region: "us-east-1",
  clusterName: "ws-fleet-local",
  clusterArn: "arn:aws:ecs:us-east-1:000000000000:cluster/ws-fleet-local",
  serviceName: "ws-fleet-local",
  family: "ws-fleet-local-worker",
  revision: 1,
};
const ours = { cluster: template.clusterName, service: template.serviceName };

function ended(change: Partial<Task> = {}): Task {
  return {
    ...newTask(template, 0, NOW_MS),
    startedAtMs: NOW_MS,
    stoppingAtMs: NOW_MS,
    stoppedAtMs: NOW_MS,
    version: 4,
    desiredStatus: "STOPPED",
    lastStatus: "DEPROVISIONING",
    exitCode: 137,
    stopCode: "EssentialContainerExited",
    stoppedReason: "Essential container in task exited",
    ...change,
  };
}

describe("the Task State Change event", () => {
  it("proves a dead task dead to the function that frees its leases", () => {
    for (const lastStatus of ["DEPROVISIONING", "STOPPED"] as const) {
      const task = ended({ lastStatus });
      const detail = parseTaskStateChange(taskStateChange(template, task, NOW_MS));
      assert.equal(notOurs(detail, ours), undefined);
      assert.equal(notProvenDead(detail), undefined);
      assert.equal(taskIdOf(detail), task.taskId);
    }
  });

  it("proves nothing of a task that runs, drains, or has no exit code", () => {
    const { exitCode: _none, ...lost } = ended();
    const alive: Task[] = [
      { ...newTask(template, 0, NOW_MS), lastStatus: "RUNNING" },
      ended({ lastStatus: "STOPPING" }),
      lost,
    ];
    for (const task of alive) {
      assert.ok(notProvenDead(parseTaskStateChange(taskStateChange(template, task, NOW_MS))) !== undefined);
    }
  });

  it("has every field of an event for a Fargate task of a service", () => {
    const event = taskStateChange(template, ended(), NOW_MS);
    const sample = crashedTask() as { detail: { containers: [object] } };
    // A local image has no digest.
    const fields = (value: object): string[] => Object.keys(value).filter((name) => name !== "imageDigest").sort(); // prettier-ignore
    const detail = event.detail as { containers: [object]; executionStoppedAt: string; version: number };
    assert.deepEqual(fields(event), fields(sample));
    assert.deepEqual(fields(detail), [...fields(sample.detail), "executionStoppedAt"].sort());
    assert.deepEqual(
      fields(detail.containers[0]),
      fields(sample.detail.containers[0]).filter((name) => name !== "reason"),
    );
    assert.equal(event["time"], "2026-01-23T17:57:58Z");
    assert.equal(detail.executionStoppedAt, "2026-01-23T17:57:58.103Z");
    assert.equal(detail.version, 4);
  });

  it("tells exit codes as Docker does", () => {
    assert.deepEqual([exitCodeOf(3, null), exitCodeOf(null, "SIGKILL"), exitCodeOf(null, "SIGTERM")], [3, 137, 143]);
  });
});

describe("the runner's endpoints", () => {
  const task = newTask(template, 0, NOW_MS);
  const serve = async () => {
    const board = new MetricsBoard();
    const endpoints = await startEndpoints({
      taskMetadata: (id) => (id === task.taskId ? taskMetadata(template, task) : undefined),
      runningTasks: () => 3,
      board,
    });
    return { board, endpoints };
  };

  it("tell a worker who it is, by the task metadata endpoint", async (t) => {
    const { endpoints } = await serve();
    t.after(() => endpoints.close());
    const ECS_CONTAINER_METADATA_URI_V4 = endpoints.metadataUri(task.taskId);
    assert.equal(await taskIdentity({ ECS_CONTAINER_METADATA_URI_V4 }), task.taskId);
    const metadata = (await (await fetch(`${ECS_CONTAINER_METADATA_URI_V4}/task`)).json()) as Record<string, unknown>;
    assert.deepEqual(
      [metadata["Cluster"], metadata["TaskARN"], metadata["Family"], metadata["Revision"]],
      [template.clusterArn, task.taskArn, template.family, "1"],
    );
    assert.equal((await fetch(`${endpoints.metadataUri("other")}/task`)).status, 404);
  });

  it("take metrics and tell the number of running tasks", async (t) => {
    const { board, endpoints } = await serve();
    t.after(() => endpoints.close());
    assert.equal(await new HttpRunningTasks(endpoints.runningTasksUrl, 5000).count(), 3);
    const sink = new HttpSink(endpoints.metricsUrl, "task-a", 5000);
    assert.equal(board.heardOf("task-a"), false);
    await sink.publish([{ name: "MessagesStored", values: [7], counts: [1] }]);
    await sink.publish([{ name: "MessagesStored", values: [2, 5], counts: [2, 1] }]);
    assert.equal(board.total("MessagesStored"), 16);
    assert.equal(board.heardOf("task-a"), true);
    const refused = await fetch(endpoints.metricsUrl, { method: "POST", body: '{"data":[]}' });
    assert.equal(refused.status, 400);
    assert.match(await refused.text(), /source/);
    assert.equal((await fetch(endpoints.metricsUrl)).status, 404);
  });
});
