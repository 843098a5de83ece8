/** ECS Task State Change events with every field that AWS puts into one for a Fargate task of a service. */

export const CLUSTER_ARN = "arn:aws:ecs:us-east-1:123456789012:cluster/ws-fleet-test";
export const TASK_ID = "c13b4cb40f1f4fe4a2971f76ae5a47ad";

interface Worker {
  readonly lastStatus: string;
  readonly exitCode?: number | null;
  readonly reason?: string;
}

/** A task of the worker service; `detail` overrides single fields. */
export function taskEvent(
  desiredStatus: string,
  lastStatus: string,
  worker: Worker,
  detail: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  const taskArn = `arn:aws:ecs:us-east-1:123456789012:task/ws-fleet-test/${TASK_ID}`;
  return {
    version: "0",
    id: "3317b2af-7005-947d-b652-f55e762e571a",
    "detail-type": "ECS Task State Change",
    source: "aws.ecs",
    account: "123456789012",
    time: "2026-01-23T17:57:58Z",
    region: "us-east-1",
    resources: [taskArn],
    detail: {
      attachments: [
        {
          id: "1789bcae-ddfb-4d10-8ebe-8ac87ddba5b8",
          type: "eni",
          status: lastStatus === "STOPPED" ? "DELETED" : "ATTACHED",
          details: [
            { name: "subnetId", value: "subnet-abcd1234" },
            { name: "privateIPv4Address", value: "10.0.0.139" },
          ],
        },
      ],
      attributes: [{ name: "ecs.cpu-architecture", value: "arm64" }],
      availabilityZone: "us-east-1c",
      capacityProviderName: "FARGATE",
      clusterArn: CLUSTER_ARN,
      connectivity: "CONNECTED",
      connectivityAt: "2026-01-23T17:57:38.453Z",
      containers: [
        {
          containerArn: "arn:aws:ecs:us-east-1:123456789012:container/ws-fleet-test/c13b/cf159fd6-3e3f-4a9e-84f9",
          cpu: "0",
          image: "123456789012.dkr.ecr.us-east-1.amazonaws.com/ws-fleet-worker:1",
          imageDigest: "sha256:74b2c688c700ec95a93e478cdb959737c148df3fbf5ea706abe0318726e885e6",
          name: "worker",
          networkInterfaces: [{ attachmentId: "1789bcae", privateIpv4Address: "10.0.0.139" }],
          runtimeId: "c13b4cb40f1f4fe4a2971f76ae5a47ad-527074092",
          taskArn,
          ...worker,
        },
      ],
      cpu: "1024",
      createdAt: "2026-01-23T17:57:34.402Z",
      desiredStatus,
      enableExecuteCommand: false,
      ephemeralStorage: { sizeInGiB: 20 },
      group: "service:ws-fleet-test",
      lastStatus,
      launchType: "FARGATE",
      memory: "2048",
      overrides: { containerOverrides: [{ name: "worker" }] },
      platformVersion: "1.4.0",
      pullStartedAt: "2026-01-23T17:57:52.103Z",
      pullStoppedAt: "2026-01-23T17:57:55.103Z",
      startedAt: "2026-01-23T17:57:58.103Z",
      startedBy: "ecs-svc/1234567890123456789",
      taskArn,
      taskDefinitionArn: "arn:aws:ecs:us-east-1:123456789012:task-definition/ws-fleet-worker:7",
      updatedAt: "2026-01-23T17:57:58.103Z",
      version: 4,
      ...detail,
    },
  };
}

export const CRASHED = {
  stopCode: "EssentialContainerExited",
  stoppedReason: "Essential container in task exited",
  stoppingAt: "2026-01-23T18:03:10.103Z",
};

/** The worker's process ended by itself with an error; the task is being taken apart. */
export function crashedTask(detail: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return taskEvent("STOPPED", "DEPROVISIONING", { lastStatus: "STOPPED", exitCode: 137 }, { ...CRASHED, ...detail });
}
