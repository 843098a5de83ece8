import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, it, type TestContext } from "node:test";
import { readServerlessFile, type ServerlessFile } from "../../../local/serverless-file.ts";
import { resolveIntrinsics } from "../../../local/serverless/intrinsics.ts";
import { BY_OWNER_INDEX, BY_STATE_INDEX, CONNECTION } from "../../../shared/connection/attributes.ts";

const projectRoot = path.join(import.meta.dirname, "../../..");

describe("serverless.yml", () => {
  const file = readServerlessFile({ projectRoot, stage: "some" });

  it("declares the connections table with the attributes that the code uses", () => {
    const table = file.tables.find((one) => one.logicalId === "ConnectionsTable")?.createInput;
    assert.equal(table?.TableName, "ws-fleet-some-connections");
    assert.deepEqual(table.KeySchema, [{ AttributeName: CONNECTION.id, KeyType: "HASH" }]);
    assert.deepEqual(table.StreamSpecification, { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" });
    assert.deepEqual(table.GlobalSecondaryIndexes, [
      {
        IndexName: BY_STATE_INDEX,
        KeySchema: [
          { AttributeName: CONNECTION.desiredState, KeyType: "HASH" },
          { AttributeName: CONNECTION.expiresAtMs, KeyType: "RANGE" },
        ],
        Projection: { ProjectionType: "INCLUDE", NonKeyAttributes: [CONNECTION.owner] },
      },
      {
        IndexName: BY_OWNER_INDEX,
        KeySchema: [{ AttributeName: CONNECTION.owner, KeyType: "HASH" }],
        Projection: { ProjectionType: "KEYS_ONLY" },
      },
    ]);
    const types = table.AttributeDefinitions?.map((one) => `${one.AttributeName} ${one.AttributeType}`);
    assert.deepEqual(types, [
      `${CONNECTION.id} S`,
      `${CONNECTION.desiredState} S`,
      `${CONNECTION.expiresAtMs} N`,
      `${CONNECTION.owner} S`,
    ]);
  });

  it("declares the messages table by connection and position, with an expiry", () => {
    const table = file.tables.find((one) => one.logicalId === "MessagesTable");
    assert.deepEqual(table?.createInput.KeySchema, [
      { AttributeName: "connection_id", KeyType: "HASH" },
      { AttributeName: "seq", KeyType: "RANGE" },
    ]);
    assert.equal(table.timeToLiveAttribute, "expires_at");
  });

  it("lets a hint expire before it can be received often enough for the dead-letter queue", () => {
    const hints = file.queues.find((one) => one.logicalId === "HintQueue");
    const visibilityS = Number(hints?.attributes["VisibilityTimeout"]);
    const retentionS = Number(hints?.attributes["MessageRetentionPeriod"]);
    assert.ok(visibilityS > 0 && retentionS > 0);
    assert.ok((hints?.redrive?.maxReceiveCount ?? 0) > retentionS / visibilityS);
    const dead = file.queues.find((one) => one.logicalId === hints?.redrive?.targetLogicalId);
    assert.equal(dead?.attributes["MessageRetentionPeriod"], String(14 * 86_400));
  });

  it("names functions by file and gives each a trigger", () => {
    assert.deepEqual(
      file.functions.map(({ name, handler, triggers }) => [name, handler, triggers.map((one) => one.kind).join()]),
      [
        ["reconcile", "functions/reconcile.handler", "schedule"],
        ["desired-state", "functions/desired-state.handler", "stream"],
        ["task-stopped", "functions/task-stopped.handler", "event"],
        ["fleet-metrics", "functions/fleet-metrics.handler", "schedule"],
        ["audit", "functions/audit.handler", "schedule"],
      ],
    );
  });
});

describe("reading a serverless.yml", () => {
  const read = (t: TestContext, yaml: string, env: Record<string, string> = {}): ServerlessFile => {
    const folder = mkdtempSync(path.join(tmpdir(), "ws-fleet-yaml-"));
    t.after(() => rmSync(folder, { recursive: true }));
    writeFileSync(path.join(folder, "serverless.yml"), yaml);
    return readServerlessFile({ projectRoot: folder, stage: "some", env });
  };
  const withQueue = (name: string, more = ""): string =>
    `service: s\nresources:\n  Resources:\n    Q:\n      Type: AWS::SQS::Queue\n      Properties:\n        QueueName: ${name}\n${more}`;

  it("resolves variables: self, stage, parameters of the stage, environment, and what to take otherwise", (t) => {
    const name = "${self:service}-${sls:stage}-${param:a}-${env:NAME, 'none'}-${env:OTHER, param:b}";
    const params = "params:\n  default: { a: 1, b: two }\n  some: { a: 3 }\n";
    assert.equal(read(t, withQueue(name, params), { NAME: "x" }).queues[0]?.queueName, "s-some-3-x-two");
  });

  it("leaves what it does not play alone, whatever that needs", (t) => {
    const file = read(
      t,
      "service: s\nprovider: { vpc: '${cf:other.Vpc}' }\nfunctions: { f: { handler: a.b, role: '${ssm:/role}' } }\n",
    );
    assert.deepEqual(
      file.functions.map((one) => one.name),
      ["f"],
    );
  });

  const refused: [what: string, yaml: string, message: RegExp][] = [
    [
      "a variable without a value",
      withQueue("${env:MISSING}"),
      /resources\.Q\.Properties\.QueueName: cannot resolve \$\{env:MISSING\}/,
    ],
    ["a source that only a deployment has", withQueue("${ssm:/name}"), /QueueName: the source of \$\{ssm:\/name\}/],
    [
      "a circle",
      withQueue("${self:custom.a}", "custom: { a: '${self:custom.a}' }\n"),
      /refer to each other in a circle/,
    ],
    ["an unknown tag", withQueue("!Unknown x"), /serverless\.yml: Unresolved tag: !Unknown/],
    [
      "an unknown property",
      withQueue("q", "        Colour: red\n"),
      /resources\.Q\.Properties: Unrecognized key: "Colour"/,
    ],
    ["a queue without a name", withQueue("''"), /resources\.Q\.Properties\.QueueName/],
    [
      "an event without a local trigger",
      "service: s\nfunctions: { f: { handler: a.b, events: [{ sqs: x }] } }",
      /functions\.f\.events\.0/,
    ],
    [
      "a handler without an export",
      "service: s\nfunctions: { f: { handler: a } }",
      /functions\.f\.handler: must be path\/of\/file\.exportedName/,
    ],
    [
      "a cron schedule",
      "service: s\nfunctions: { f: { handler: a.b, events: [{ schedule: cron(0 * * * ? *) }] } }",
      /functions\.f\.events\.0\.schedule/,
    ],
    ["no service", "provider: {}\n", /service: must be a non-empty string/],
  ];
  for (const [what, yaml, message] of refused) {
    it(`refuses ${what}`, (t) => assert.throws(() => read(t, yaml), message));
  }
});

describe("CloudFormation references", () => {
  const references = { Q: "url", "Q.Arn": "arn", "AWS::Region": "eu-west-1" };
  const resolve = (value: unknown): unknown => resolveIntrinsics(value, references, "at");

  it("get their local values", () => {
    const value = { a: [{ Ref: "Q" }, { "Fn::GetAtt": ["Q", "Arn"] }], b: { "Fn::Sub": "${Q.Arn}/${AWS::Region}" } };
    assert.deepEqual(resolve(value), { a: ["url", "arn"], b: "arn/eu-west-1" });
    assert.equal(resolve({ "Fn::Join": ["-", ["x", { Ref: "Q" }]] }), "x-url");
  });

  it("without a local value, or of a function that is not played, are errors that name them", () => {
    assert.throws(() => resolve({ Ref: "Nobody" }), /at: nothing local stands for the reference Nobody/);
    assert.throws(() => resolve([{ "Fn::ImportValue": "x" }]), /at\.0: Fn::ImportValue is not played locally/);
  });
});
