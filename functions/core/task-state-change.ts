import { z } from "zod";
import { parseEvent } from "./event-shape.ts";

/** The container that runs the worker, as the task definition names it. */
export const WORKER_CONTAINER = "worker";

/**
 * The part of an ECS Task State Change event that decides. Amazon adds fields over time, so others are let through
 * (Amazon ECS Developer Guide, "task state change events").
 */
const taskStateChange = z.object({
  source: z.literal("aws.ecs"),
  "detail-type": z.literal("ECS Task State Change"),
  detail: z.object({
    clusterArn: z.string().regex(/^arn:[^:]+:ecs:.*:cluster\/[^/]+$/, "must be the ARN of an ECS cluster"),
    taskArn: z.string().regex(/^arn:[^:]+:ecs:.*:task\/(.+\/)?[^/]+$/, "must be the ARN of an ECS task"),
    /** Absent for tasks that no service started. */
    group: z.string().optional(),
    desiredStatus: z.string(),
    lastStatus: z.string(),
    stopCode: z.string().optional(),
    stoppedReason: z.string().optional(),
    containers: z.array(
      z.object({
        name: z.string(),
        lastStatus: z.string(),
        /** Only of a process whose end was seen. */
        exitCode: z.int().nullish(),
      }),
    ),
  }),
});

export type TaskDetail = z.infer<typeof taskStateChange>["detail"];

/** @throws {EventShapeError} naming the field and the rule. */
export function parseTaskStateChange(event: unknown): TaskDetail {
  return parseEvent(taskStateChange, event, "an ECS Task State Change event").detail;
}

/** The service whose tasks own leases. */
export interface OurService {
  /** Name or ARN. */
  readonly cluster: string;
  readonly service: string;
}

/** Why the task is none of ours, or undefined when it is one. */
export function notOurs(detail: TaskDetail, { cluster, service }: OurService): string | undefined {
  const seen = cluster.startsWith("arn:") ? detail.clusterArn : lastSegment(detail.clusterArn);
  if (seen !== cluster) return `detail.clusterArn: must be of the cluster ${cluster}`;
  if (detail.group !== `service:${service}`) return `detail.group: must be service:${service}`;
  return undefined;
}

/**
 * Why the task's process may still run, or undefined when it is proven dead. A task that only drains still acts. Where
 * there is no exit code nobody saw the process end (its host may be lost, or merely cut off): its leases expire instead.
 */
export function notProvenDead(detail: TaskDetail): string | undefined {
  if (detail.desiredStatus !== "STOPPED") return "detail.desiredStatus: must be STOPPED";
  if (detail.lastStatus !== "DEPROVISIONING" && detail.lastStatus !== "STOPPED") {
    return "detail.lastStatus: must be DEPROVISIONING or STOPPED";
  }
  const workers = detail.containers.filter(({ name }) => name === WORKER_CONTAINER);
  if (workers.length !== 1) return `detail.containers: exactly one must be called ${WORKER_CONTAINER}`;
  const [worker] = workers;
  if (worker?.lastStatus !== "STOPPED") return `detail.containers: ${WORKER_CONTAINER} must be STOPPED`;
  if (typeof worker.exitCode !== "number") return `detail.containers: ${WORKER_CONTAINER} must have an exitCode`;
  return undefined;
}

/** What a worker writes as `lease_owner`. */
export function taskIdOf(detail: TaskDetail): string {
  return lastSegment(detail.taskArn);
}

function lastSegment(arn: string): string {
  return arn.slice(arn.lastIndexOf("/") + 1);
}
