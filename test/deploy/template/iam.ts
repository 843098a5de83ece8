import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { propertiesOf, type Template } from "../../../deploy/plugins/osls.ts";
import { actionOf, grantsOf, roleIds } from "../support/iam.ts";
import { assertPinned } from "../support/pinned.ts";
import { usedCommands } from "../support/used-commands.ts";

/** Actions that AWS offers on `*` alone (Service Authorization Reference). */
const ONLY_ON_EVERYTHING: readonly string[] = ["cloudwatch:PutMetricData", "ecr:GetAuthorizationToken"];
/** Names that this stack gives, where a resource has no attribute to refer to. */
const OWN_NAMES: readonly string[] = [":service/${Cluster}/ws-fleet-some", ":repository/ws-fleet-some-worker"];
/** Roles, which are looked at below; and policies that allow nothing: of a bucket that refuses HTTP, and of scaling. */
const KNOWN_POLICIES = new Set([
  "AWS::IAM::Role",
  "AWS::S3::BucketPolicy",
  "AWS::ApplicationAutoScaling::ScalingPolicy",
]);
const OF_THIS_ACCOUNT = {
  StringEquals: { "aws:SourceAccount": { Ref: "AWS::AccountId" } },
  ArnLike: {
    "aws:SourceArn": { "Fn::Sub": "arn:${AWS::Partition}:ecs:${AWS::Region}:${AWS::AccountId}:*" },
  },
};
/** What Lambda does with a function's role: logs, and for the stream's function its records. */
const LOGS = ["logs:CreateLogStream", "logs:PutLogEvents"];
const STREAM = ["DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"].map((name) => `dynamodb:${name}`);

/** By role: the program, what AWS itself does with the role, and what the program's files could send but never do. */
const PROGRAMS: Readonly<Record<string, { entry: string; platform: readonly string[]; unused: readonly string[] }>> = {
  ReconcileRole: { entry: "functions/reconcile.ts", platform: LOGS, unused: [] },
  DesiredStateRole: {
    entry: "functions/desired-state.ts",
    platform: [...LOGS, ...STREAM],
    unused: ["sqs:GetQueueAttributes"],
  },
  TaskStoppedRole: { entry: "functions/task-stopped.ts", platform: LOGS, unused: [] },
  FleetMetricsRole: { entry: "functions/fleet-metrics.ts", platform: LOGS, unused: ["sqs:SendMessage"] },
  AuditRole: { entry: "functions/audit.ts", platform: LOGS, unused: [] },
  WorkerTaskRole: { entry: "worker/main.ts", platform: [], unused: [] },
};

export function iamSuite(template: Template): void {
  const grants = roleIds(template).flatMap((role) => grantsOf(template, role));

  describe("roles", () => {
    it("are one per function, one for the worker and one to start it", () => {
      assert.deepEqual(roleIds(template).sort(), [...Object.keys(PROGRAMS), "WorkerExecutionRole"].sort());
      const used = Object.values(template.Resources)
        .filter(({ Type }) => Type === "AWS::Lambda::Function")
        .map(({ Properties }) => (Properties?.["Role"] as { "Fn::GetAtt": string[] })["Fn::GetAtt"][0]);
      assert.equal(new Set(used).size, used.length, "no two functions share a role");
    });

    it("name actions, never patterns of them", () => {
      assert.deepEqual(
        grants.filter(({ action }) => !/^[a-z]+:[A-Za-z]+$/.test(action)),
        [],
      );
    });

    it("grant each action on the resources that stand in pinned/roles.json, under those conditions, and nothing else", () => {
      const byRole: Record<string, Record<string, Record<string, unknown>>> = {};
      for (const { role, action, resource, condition } of grants) {
        ((byRole[role] ??= {})[resource] ??= {})[action] = condition ?? "always";
      }
      assertPinned("roles", byRole);
    });

    it("name resources of this stack, except for the actions that know none", () => {
      const onEverything = new Set(grants.filter(({ resource }) => resource === "*").map(({ action }) => action));
      assert.deepEqual([...onEverything].sort(), ONLY_ON_EVERYTHING);
      for (const { resource, role, action } of grants) {
        if (resource === "*") continue;
        const [first = ""] = resource.replace(/^\$\{/, "").split(/[.}]/);
        const own = first in template.Resources || OWN_NAMES.some((name) => resource.endsWith(name));
        assert.ok(own && !/[*?]/.test(resource), `${role}: ${action} on ${resource}`);
      }
    });

    it("are the only place that allows anything", () => {
      const allowing = Object.entries(template.Resources).filter(
        ([, { Type }]) => /^AWS::IAM::|Policy$/.test(Type) && !KNOWN_POLICIES.has(Type),
      );
      assert.deepEqual(
        allowing.map(([id]) => id),
        [],
      );
    });

    it("fence metrics by their namespace", () => {
      for (const { action, condition } of grants) {
        if (action !== "cloudwatch:PutMetricData") continue;
        assert.deepEqual(condition, { StringEquals: { "cloudwatch:namespace": "WsFleet" } });
      }
    });

    it("let nobody create or delete an item of the connections table", () => {
      const writes = grants.filter(({ action }) => /^dynamodb:(Put|Delete|Batch|Transact|Partiql)/i.test(action));
      const resources = writes.map(({ role, action, resource }) => [role, action, resource]);
      assert.deepEqual(resources, [["WorkerTaskRole", "dynamodb:BatchWriteItem", "MessagesTable.Arn"]]);
    });

    it("can be assumed by their service alone", () => {
      for (const role of roleIds(template)) {
        const document = propertiesOf(template, role)["AssumeRolePolicyDocument"] as {
          Statement: unknown[];
        };
        const [Service, fence] = role.startsWith("Worker")
          ? ["ecs-tasks.amazonaws.com", { Condition: OF_THIS_ACCOUNT }]
          : ["lambda.amazonaws.com", {}];
        const assumed = { Effect: "Allow", Principal: { Service }, Action: "sts:AssumeRole", ...fence };
        assert.deepEqual(document.Statement, [assumed], role);
      }
    });
  });

  for (const [role, { entry, platform, unused }] of Object.entries(PROGRAMS)) {
    it(`${role} allows exactly what ${entry} sends`, async () => {
      const allowed = new Set(grants.filter((grant) => grant.role === role).map(({ action }) => action));
      const possible = [...(await usedCommands(entry))].map(actionOf);
      for (const action of unused) assert.ok(possible.includes(action), `${action} is no longer among the files' own`);
      const sent = possible.filter((action) => !unused.includes(action));
      assert.deepEqual([...allowed].sort(), [...new Set([...sent, ...platform])].sort());
    });
  }
}
