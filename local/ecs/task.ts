import { randomBytes } from "node:crypto";

export type TaskStatus = "PROVISIONING" | "RUNNING" | "STOPPING" | "DEPROVISIONING" | "STOPPED";
export type StopCode = "EssentialContainerExited" | "UserInitiated" | "ServiceSchedulerInitiated";

/** What tasks of one service have in common. */
export interface TaskTemplate {
  readonly region: string;
  readonly clusterName: string;
  readonly clusterArn: string;
  readonly serviceName: string;
  readonly family: string;
  readonly revision: number;
}

/** A task as ECS tells of it. Times are wall clock milliseconds; `version` rises with every change. */
export interface Task {
  readonly taskId: string;
  readonly taskArn: string;
  /** Which of the service's places it takes; its replacement takes the same. */
  readonly slot: number;
  readonly createdAtMs: number;
  startedAtMs?: number;
  stoppingAtMs?: number;
  stoppedAtMs?: number;
  version: number;
  desiredStatus: "RUNNING" | "STOPPED";
  lastStatus: TaskStatus;
  exitCode?: number;
  stopCode?: StopCode;
  stoppedReason?: string;
}

/** The container of the task definition that runs supervisor and worker. */
export const WORKER_CONTAINER = "worker";
export const CPU_UNITS = 512;
export const MEMORY_MIB = 1024;

export function newTask(template: TaskTemplate, slot: number, nowMs: number): Task {
  const taskId = randomBytes(16).toString("hex");
  const account = template.clusterArn.split(":")[4] ?? "";
  return {
    taskId,
    taskArn: `arn:aws:ecs:${template.region}:${account}:task/${template.clusterName}/${taskId}`,
    slot,
    createdAtMs: nowMs,
    version: 1,
    desiredStatus: "RUNNING",
    lastStatus: "PROVISIONING",
  };
}

/** As Docker tells it: the program's own code, or 128 plus the number of the signal that ended it. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  if (code !== null) return code;
  return 128 + (signal === "SIGTERM" ? 15 : signal === "SIGINT" ? 2 : 9);
}

/**
 * What `${ECS_CONTAINER_METADATA_URI_V4}/task` answers on Fargate, as far as a program can use it here (Amazon ECS
 * Developer Guide, "task metadata endpoint version 4").
 */
export function taskMetadata(template: TaskTemplate, task: Task): object {
  const startedAt = isoTime(task.startedAtMs ?? task.createdAtMs);
  return {
    Cluster: template.clusterArn,
    ServiceName: template.serviceName,
    VPCID: "vpc-local",
    TaskARN: task.taskArn,
    Family: template.family,
    Revision: String(template.revision),
    DesiredStatus: task.desiredStatus,
    KnownStatus: task.lastStatus,
    Limits: { CPU: CPU_UNITS / 1024, Memory: MEMORY_MIB },
    PullStartedAt: startedAt,
    PullStoppedAt: startedAt,
    AvailabilityZone: `${template.region}a`,
    LaunchType: "FARGATE",
    Containers: [
      {
        DockerId: `${task.taskId}-${containerNumber(task)}`,
        Name: WORKER_CONTAINER,
        DockerName: WORKER_CONTAINER,
        DesiredStatus: task.desiredStatus,
        KnownStatus: task.lastStatus,
        Limits: { CPU: CPU_UNITS, Memory: MEMORY_MIB },
        CreatedAt: isoTime(task.createdAtMs),
        StartedAt: startedAt,
        Type: "NORMAL",
        ContainerARN: containerArn(template, task),
      },
    ],
    ClockDrift: {
      ClockErrorBound: 0.5,
      ReferenceTimestamp: isoTime(Date.now()),
      ClockSynchronizationStatus: "SYNCHRONIZED",
    },
  };
}

export function containerArn({ region, clusterArn, clusterName }: TaskTemplate, { taskId }: Task): string {
  const account = clusterArn.split(":")[4] ?? "";
  return `arn:aws:ecs:${region}:${account}:container/${clusterName}/${taskId}/${taskId.slice(0, 8)}`;
}

/** The number behind the task id in a container's runtime id. */
export function containerNumber({ taskId }: Task): number {
  return Number.parseInt(taskId.slice(0, 7), 16);
}

export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
