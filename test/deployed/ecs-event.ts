import {
  DeleteRuleCommand,
  ListRulesCommand,
  ListTargetsByRuleCommand,
  PutEventsCommand,
  PutRuleCommand,
  PutTargetsCommand,
  RemoveTargetsCommand,
  TestEventPatternCommand,
  type EventBridgeClient,
} from "@aws-sdk/client-eventbridge";
import assert from "node:assert/strict";

/** The event that ECS sends once a task's worker has ended. */
export function taskStopped(taskArn: string, clusterArn: string, service: string, exitCode: number) {
  return {
    version: "0",
    id: "7f1c4f1e-4a2b-4d9e-8f43-2a5d0e6b8c11",
    source: "aws.ecs",
    "detail-type": "ECS Task State Change",
    account: "000000000000",
    time: new Date().toISOString(),
    region: "us-east-1",
    resources: [taskArn],
    detail: {
      clusterArn,
      taskArn,
      group: `service:${service}`,
      desiredStatus: "STOPPED",
      lastStatus: "STOPPED",
      stopCode: "EssentialContainerExited",
      version: 5,
      containers: [{ name: "worker", lastStatus: "STOPPED", exitCode }],
    },
  };
}

export type TaskStopped = ReturnType<typeof taskStopped>;

/** The deployed rule's pattern, as the service itself evaluates it. */
export async function ruleMatches(events: EventBridgeClient, event: TaskStopped): Promise<boolean> {
  const { EventPattern } = await taskRule(events);
  const { Result } = await events.send(new TestEventPatternCommand({ EventPattern, Event: JSON.stringify(event) }));
  return Result === true;
}

/**
 * Delivers the event to the deployed rule's own target. Nobody but AWS may send events of `aws.ecs`, so another event on
 * the bus stands for it: a rule for that one hands the target what ECS would have said.
 */
export async function deliver(events: EventBridgeClient, event: TaskStopped): Promise<void> {
  const { Name: Rule } = await taskRule(events);
  const { Targets } = await events.send(new ListTargetsByRuleCommand({ Rule }));
  const [target, ...others] = Targets ?? [];
  assert.ok(target?.Arn !== undefined && others.length === 0);
  const standIn = { Name: "stand-in", EventPattern: JSON.stringify({ source: ["ws-fleet.test"] }) };
  await events.send(new PutRuleCommand(standIn));
  const targets = [{ Id: "same", Arn: target.Arn, Input: JSON.stringify(event) }];
  await events.send(new PutTargetsCommand({ Rule: standIn.Name, Targets: targets }));
  const entry = { Source: "ws-fleet.test", DetailType: "Task ended", Detail: "{}" };
  const { FailedEntryCount } = await events.send(new PutEventsCommand({ Entries: [entry] }));
  assert.equal(FailedEntryCount, 0);
  await events.send(new RemoveTargetsCommand({ Rule: standIn.Name, Ids: ["same"] }));
  await events.send(new DeleteRuleCommand({ Name: standIn.Name }));
}

async function taskRule(events: EventBridgeClient): Promise<{ Name: string; EventPattern: string }> {
  const { Rules } = await events.send(new ListRulesCommand());
  const rule = Rules?.find(({ EventPattern }) => EventPattern?.includes("aws.ecs"));
  assert.ok(rule?.Name !== undefined && rule.EventPattern !== undefined);
  return { Name: rule.Name, EventPattern: rule.EventPattern };
}
