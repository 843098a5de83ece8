import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  notOurs,
  notProvenDead,
  parseTaskStateChange,
  taskIdOf,
  type TaskDetail,
} from "../../functions/core/task-state-change.ts";
import { CLUSTER_ARN, crashedTask, TASK_ID, taskEvent } from "./support/ecs-events.ts";

const STOPPED = { lastStatus: "STOPPED", exitCode: 0 };
const detailOf = (event: unknown): TaskDetail => parseTaskStateChange(event);

describe("notProvenDead", () => {
  const dead: [string, unknown][] = [
    ["crashed, its network interface still being removed", crashedTask()],
    ["stopped altogether", taskEvent("STOPPED", "STOPPED", { lastStatus: "STOPPED", exitCode: 1 })],
    [
      "drained and ended with 0",
      taskEvent("STOPPED", "DEPROVISIONING", STOPPED, { stopCode: "ServiceSchedulerInitiated" }),
    ],
    [
      "interrupted by Fargate Spot, after its process ended",
      taskEvent("STOPPED", "STOPPED", STOPPED, {
        stopCode: "SpotInterruption",
        stoppedReason: "Your Spot Task was interrupted.",
        capacityProviderName: "FARGATE_SPOT",
      }),
    ],
  ];
  for (const [what, event] of dead) {
    it(`takes a task for dead: ${what}`, () => assert.equal(notProvenDead(detailOf(event)), undefined));
  }

  const alive: [string, unknown, RegExp][] = [
    ["runs", taskEvent("RUNNING", "RUNNING", { lastStatus: "RUNNING" }), /desiredStatus/],
    ["drains", taskEvent("STOPPED", "RUNNING", { lastStatus: "RUNNING" }), /detail\.lastStatus/],
    [
      "is leaving its load balancer",
      taskEvent("STOPPED", "DEACTIVATING", { lastStatus: "RUNNING" }),
      /detail\.lastStatus/,
    ],
    ["got its SIGTERM", taskEvent("STOPPED", "STOPPING", { lastStatus: "RUNNING" }), /detail\.lastStatus/],
    [
      "has two minutes' notice by Fargate Spot",
      taskEvent(
        "STOPPED",
        "RUNNING",
        { lastStatus: "RUNNING" },
        {
          stopCode: "SpotInterruption",
          stoppedReason: "Your Spot Task was interrupted.",
        },
      ),
      /detail\.lastStatus/,
    ],
    [
      "stopped while its worker is said to run",
      taskEvent("STOPPED", "STOPPED", { lastStatus: "RUNNING" }),
      /worker must be STOPPED/,
    ],
    [
      "was lost with its host: no exit code",
      taskEvent("STOPPED", "STOPPED", { lastStatus: "STOPPED", reason: "Host terminated" }),
      /must have an exitCode/,
    ],
    [
      "has an exit code of null",
      taskEvent("STOPPED", "STOPPED", { lastStatus: "STOPPED", exitCode: null }),
      /must have an exitCode/,
    ],
    [
      "never had containers",
      taskEvent("STOPPED", "STOPPED", STOPPED, { containers: [] }),
      /exactly one must be called worker/,
    ],
    [
      "stopped only its sidecar",
      taskEvent("STOPPED", "DEPROVISIONING", STOPPED, {
        containers: [{ name: "sidecar", lastStatus: "STOPPED", exitCode: 0 }],
      }),
      /exactly one must be called worker/,
    ],
    ["is to run although its container stopped", taskEvent("RUNNING", "STOPPED", STOPPED), /desiredStatus/],
  ];
  for (const [what, event, reason] of alive) {
    it(`leaves a task alone that ${what}`, () => assert.match(notProvenDead(detailOf(event)) ?? "dead", reason));
  }
});

describe("notOurs", () => {
  const service = "ws-fleet-test";

  it("knows the cluster by name and by ARN", () => {
    for (const cluster of ["ws-fleet-test", CLUSTER_ARN]) {
      assert.equal(notOurs(detailOf(crashedTask()), { cluster, service }), undefined);
    }
  });

  it("refuses a cluster that is another one, also of the same name in another account", () => {
    const others = ["ws-fleet", "test", CLUSTER_ARN.replace("123456789012", "999999999999"), "cluster/ws-fleet-test"];
    for (const cluster of others) {
      assert.match(notOurs(detailOf(crashedTask()), { cluster, service }) ?? "", /detail\.clusterArn/, cluster);
    }
  });

  it("refuses another service and a task without one", () => {
    for (const group of ["service:ws-fleet-test-2", "family:ws-fleet-test", "ws-fleet-test", undefined]) {
      const reason = notOurs(detailOf(crashedTask({ group })), { cluster: CLUSTER_ARN, service });
      assert.match(reason ?? "", /detail\.group: must be service:ws-fleet-test/, String(group));
    }
  });
});

describe("parseTaskStateChange", () => {
  it("reads the task id from both forms of a task's ARN", () => {
    assert.equal(taskIdOf(detailOf(crashedTask())), TASK_ID);
    const old = crashedTask({ taskArn: `arn:aws:ecs:us-east-1:123456789012:task/${TASK_ID}` });
    assert.equal(taskIdOf(detailOf(old)), TASK_ID);
    const china = crashedTask({ taskArn: `arn:aws-cn:ecs:cn-north-1:123456789012:task/c/${TASK_ID}` });
    assert.equal(taskIdOf(detailOf(china)), TASK_ID);
  });

  const refused: [string, unknown, RegExp][] = [
    ["no object", null, /event: /],
    ["another source", { ...crashedTask(), source: "aws.ec2" }, /source: /],
    ["another type", { ...crashedTask(), "detail-type": "ECS Service Action" }, /detail-type: /],
    ["no detail", { ...crashedTask(), detail: undefined }, /detail: /],
    ["no task ARN", crashedTask({ taskArn: undefined }), /detail\.taskArn: /],
    ["a bare task id", crashedTask({ taskArn: TASK_ID }), /detail\.taskArn: must be the ARN of an ECS task/],
    [
      "a task ARN without an id",
      crashedTask({ taskArn: "arn:aws:ecs:us-east-1:1:task/c/" }),
      /detail\.taskArn: must be/,
    ],
    [
      "a cluster name",
      crashedTask({ clusterArn: "ws-fleet-test" }),
      /detail\.clusterArn: must be the ARN of an ECS cluster/,
    ],
    ["no containers", crashedTask({ containers: undefined }), /detail\.containers: /],
    [
      "an exit code in words",
      taskEvent("STOPPED", "STOPPED", { lastStatus: "STOPPED", exitCode: "0" as never }),
      /detail\.containers\.0\.exitCode: /,
    ],
  ];
  for (const [what, event, problem] of refused) {
    it(`names field and rule: ${what}`, () => {
      assert.throws(
        () => parseTaskStateChange(event),
        (error: Error) => {
          assert.equal(error.name, "EventShapeError");
          assert.match(error.message, /^not an ECS Task State Change event: /);
          assert.match(error.message, problem);
          return true;
        },
      );
    });
  }
});
