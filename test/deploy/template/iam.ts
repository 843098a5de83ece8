import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { propertiesOf, type Template } from "../../../deploy/plugins/osls.ts";
import { actionOf, grantsOf, roleIds } from "../support/iam.ts";
import { usedCommands } from "../support/used-commands.ts";

/** Actions that AWS offers on `*` alone (Service Authorization Reference). */
const ONLY_ON_EVERYTHING: readonly string[] = ["cloudwatch:PutMetricData", "ecr:GetAuthorizationToken"];
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

    it("name resources, except for the actions that know none", () => {
      const onEverything = grants.filter(({ resource }) => typeof resource === "string" && resource.includes("*"));
      const actions = new Set(onEverything.map(({ action }) => action));
      assert.deepEqual([...actions].sort(), ONLY_ON_EVERYTHING);
      for (const { resource, role, action } of grants) {
        const text = JSON.stringify(resource);
        const known = text === '"*"' || /"(Fn::GetAtt|Fn::Sub)"/.test(text);
        assert.ok(known, `${role}: ${action} on ${text} is a resource of this stack`);
      }
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
      assert.deepEqual(resources, [
        ["WorkerTaskRole", "dynamodb:BatchWriteItem", { "Fn::GetAtt": ["MessagesTable", "Arn"] }],
      ]);
    });

    it("can be assumed by their service alone", () => {
      for (const role of roleIds(template)) {
        const document = propertiesOf(template, role)["AssumeRolePolicyDocument"] as {
          Statement: { Principal: unknown }[];
        };
        const service = role.startsWith("Worker") ? "ecs-tasks.amazonaws.com" : "lambda.amazonaws.com";
        assert.deepEqual(
          document.Statement.map(({ Principal }) => Principal),
          [{ Service: service }],
        );
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
