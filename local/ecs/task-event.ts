import { randomUUID } from "node:crypto";
import type { BusEvent } from "../triggers/event-bus.ts";
import {
  containerArn,
  containerNumber,
  CPU_UNITS,
  isoTime,
  MEMORY_MIB,
  WORKER_CONTAINER,
  type Task,
  type TaskStatus,
  type TaskTemplate,
} from "./task.ts";

/** The container ends before the task is taken apart. */
const CONTAINER_STATUS: Readonly<Record<TaskStatus, string>> = {
  PROVISIONING: "PENDING",
  RUNNING: "RUNNING",
  STOPPING: "RUNNING",
  DEPROVISIONING: "STOPPED",
  STOPPED: "STOPPED",
};

/**
 * An ECS Task State Change event of a Fargate task, with the fields that Amazon ECS sends for one (Amazon ECS Developer
 * Guide, "Amazon ECS task state change events").
 */
export function taskStateChange(template: TaskTemplate, task: Task, nowMs: number): BusEvent {
  const { region, clusterArn, serviceName, family, revision } = template;
  const account = clusterArn.split(":")[4] ?? "";
  const attachmentId = `${task.taskId.slice(0, 8)}-eni`;
  const address = `10.0.${task.slot % 256}.10`;
  const times = {
    createdAt: task.createdAtMs,
    pullStartedAt: task.startedAtMs,
    pullStoppedAt: task.startedAtMs,
    startedAt: task.startedAtMs,
    stoppingAt: task.stoppingAtMs,
    executionStoppedAt: task.stoppedAtMs,
    stoppedAt: task.lastStatus === "STOPPED" ? task.stoppedAtMs : undefined,
    updatedAt: nowMs,
  };
  return {
    version: "0",
    id: randomUUID(),
    "detail-type": "ECS Task State Change",
    source: "aws.ecs",
    account,
    time: isoTime(nowMs).replace(/\.\d+Z$/u, "Z"),
    region,
    resources: [task.taskArn],
    detail: {
      attachments: [
        {
          id: attachmentId,
          type: "eni",
          status: task.lastStatus === "STOPPED" ? "DELETED" : "ATTACHED",
          details: [{ name: "privateIPv4Address", value: address }],
        },
      ],
      attributes: [{ name: "ecs.cpu-architecture", value: "x86_64" }],
      availabilityZone: `${region}a`,
      capacityProviderName: "FARGATE",
      clusterArn,
      connectivity: "CONNECTED",
      connectivityAt: isoTime(task.createdAtMs),
      containers: [
        {
          containerArn: containerArn(template, task),
          cpu: String(CPU_UNITS),
          image: `${family}:${revision}`,
          name: WORKER_CONTAINER,
          lastStatus: CONTAINER_STATUS[task.lastStatus],
          ...(task.exitCode === undefined ? {} : { exitCode: task.exitCode }),
          networkInterfaces: [{ attachmentId, privateIpv4Address: address }],
          runtimeId: `${task.taskId}-${containerNumber(task)}`,
          taskArn: task.taskArn,
        },
      ],
      cpu: String(CPU_UNITS),
      memory: String(MEMORY_MIB),
      desiredStatus: task.desiredStatus,
      lastStatus: task.lastStatus,
      enableExecuteCommand: false,
      ephemeralStorage: { sizeInGiB: 20 },
      group: `service:${serviceName}`,
      launchType: "FARGATE",
      overrides: { containerOverrides: [{ name: WORKER_CONTAINER }] },
      platformVersion: "1.4.0",
      startedBy: "ecs-svc/0000000000000000001",
      taskArn: task.taskArn,
      taskDefinitionArn: `arn:aws:ecs:${region}:${account}:task-definition/${family}:${revision}`,
      version: task.version,
      ...Object.fromEntries(
        Object.entries(times).flatMap(([name, ms]) => (ms === undefined ? [] : [[name, isoTime(ms)]])),
      ),
      ...(task.stopCode === undefined ? {} : { stopCode: task.stopCode, stoppedReason: task.stoppedReason ?? "" }),
    },
  };
}
