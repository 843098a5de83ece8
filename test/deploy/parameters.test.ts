import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import { parse } from "yaml";
import { parametersOf } from "../../deploy/plugins/check-parameters.ts";
import type { ParameterValues, Serverless } from "../../deploy/plugins/osls.ts";
import { PARAMETER_NAMES, parameterProblems, stageProblems } from "../../deploy/plugins/parameters.ts";
import { DEFINITIONS, type SettingName } from "../../shared/config/definitions.ts";
import { packageService, PROJECT_ROOT } from "./support/package.ts";

const yaml = readFileSync(path.join(PROJECT_ROOT, "serverless.yml"), "utf8");
// Tags of CloudFormation stand outside `params`.
const { params } = parse(yaml, { logLevel: "silent" }) as { params: Record<string, ParameterValues> };

const given = (param: readonly string[], stage = "some") =>
  parametersOf(
    { configurationInput: { params }, processedInput: { options: { param } } } as unknown as Serverless,
    stage,
  );

/** What was given, and the one problem that it makes. */
const REFUSED: readonly (readonly [given: string, problem: RegExp])[] = [
  ["leasMs=20000", /^leasMs: no such parameter/],
  ["leaseMs=soon", /^leaseMs="soon": must be a whole number$/],
  ["leaseMs=9000", /^heartbeatMs, heartbeatJitter, attempts, attemptTimeoutMs, leaseMs, marginMs: 2 × longest/],
  ["heartbeatMs=100000", /^heartbeatMs.*leaseMs, marginMs: 2 × longest heartbeat/],
  ["heartbeatJitter=2", /^heartbeatJitter="2": must be a number from 0 to 1$/],
  ["marginMs=2000", /^marginMs, skewMs: margin must be more than 2 × skew/],
  ["attempts=11", /^attempts="11": must be at most 10$/],
  ["sweepMs=61000", /^sweepMs: must be at most one minute/],
  ["metricsMs=61000", /^metricsMs: must be at most one minute/],
  ["targetConnections=801", /^targetConnections, maxConnections: .*80 % of the cap/],
  ["hintVisibilitySeconds=2", /^hintVisibilitySeconds, acquireBudgetMs: hint visibility must be more/],
  ["hintVisibilitySeconds=1", /^hintVisibilitySeconds="1": must be a whole number from 2 to 30$/],
  ["longPollSeconds=21", /^longPollSeconds="21": must be a whole number from 0 to 20$/],
  ["stopTimeoutSeconds=121", /^stopTimeoutSeconds="121": must be a whole number from 10 to 120$/],
  ["drainBudgetMs=115000", /^drainBudgetMs, stopTimeoutSeconds: drain budget must be less/],
  ["scaleOutCooldownSeconds=-1", /^scaleOutCooldownSeconds="-1": must be/],
  ["scaleInCooldownSeconds=1.5", /^scaleInCooldownSeconds="1.5": must be/],
  ["targetHintsPerTask=0", /^targetHintsPerTask="0": must be/],
  ["logLevel=loud", /^logLevel="loud": must be one of trace,/],
  ["workerImage=my worker", /^workerImage="my worker": must be an image/],
  ["workerCpu=300", /^workerCpu="300": must be one of 256, 512,/],
  ["workerMemory=8192", /^workerCpu, workerMemory: Fargate has no task of this size$/],
  ["workerMemory=1536", /^workerCpu, workerMemory: Fargate has no task of this size$/],
  ["minTasks=0", /^minTasks="0": must be a whole number from 1/],
  ["maxTasks=1", /^maxTasks: must be at least minTasks$/],
  ["spotWeight=1001", /^spotWeight="1001": must be/],
  ["onDemandWeight=0", /^onDemandWeight, spotWeight: one of them must be above 0$/],
  ["vpcId=vpc-0a1b2c3d", /^vpcId, subnetIds: give both/],
  ["subnetIds=subnet-0a1b, subnet-2c3d", /^subnetIds=.*without spaces$/],
  ["assignPublicIp=DISABLED", /^assignPublicIp: must be ENABLED in the fleet's own network/],
  ["alarmTopicArn=alarms", /^alarmTopicArn="alarms": must be the ARN/],
  ["logRetentionDays=never", /^logRetentionDays="never": must be/],
  ["reserveConcurrency=yes", /^reserveConcurrency="yes": must be one of true, false$/],
  ["autoscaling=no", /^autoscaling="no": must be one of true, false$/],
  ["tableDeletionPolicy=Keep", /^tableDeletionPolicy="Keep": must be one of Retain, Delete$/],
  ["tableDeletionPolicy=Delete", /^tableDeletionProtection: must be false when tableDeletionPolicy is Delete/],
  ["tableDeletionProtection=no", /^tableDeletionProtection="no": must be/],
  ["orphanAlarmMs=10000", /^orphanAlarmMs: must be more than sweepMs/],
  ["iteratorAgeAlarmMs=late", /^iteratorAgeAlarmMs="late": must be/],
  ["deadlineAlarmMs=11000", /^deadlineAlarmMs: must be less than lease − margin − longest heartbeat/],
  ["clockAlarmMs=1001", /^clockAlarmMs: must be at most skewMs/],
];

describe("parameters", () => {
  it("that can be given are those of serverless.yml, and its own are accepted", () => {
    assert.deepEqual([...PARAMETER_NAMES].sort(), Object.keys(params["default"] ?? {}).sort());
    for (const stage of ["some", "dev"]) assert.deepEqual(parameterProblems(given([], stage)), [], stage);
  });

  it("have the defaults of the settings that they set", () => {
    for (const [name, value] of Object.entries(params["default"] ?? {})) {
      const setting = (name.endsWith("Seconds") ? name.replace(/Seconds$/, "Ms") : name) as SettingName;
      if (!(setting in DEFINITIONS)) continue;
      assert.equal(name === setting ? String(value) : `${String(value)}000`, DEFINITIONS[setting].default, name);
    }
  });

  it("come from the command line, else from the stage, else from the defaults", () => {
    assert.equal(given([], "some")["tableDeletionPolicy"], "Retain");
    assert.equal(given([], "dev")["tableDeletionPolicy"], "Delete");
    assert.equal(given(["tableDeletionPolicy=Retain", "workerImage=a/b=c"], "dev")["tableDeletionPolicy"], "Retain");
    assert.equal(given(["workerImage=r.example/w:1=2"])["workerImage"], "r.example/w:1=2");
  });

  it("of a network that is there already, of Spot and of a slower heartbeat are accepted", () => {
    const elsewhere = ["vpcId=vpc-0a1b2c3d", "subnetIds=subnet-0a1b2c3d,subnet-2c3d4e5f", "assignPublicIp=DISABLED"];
    assert.deepEqual(parameterProblems(given([...elsewhere, "onDemandWeight=0", "spotWeight=1"])), []);
    assert.deepEqual(parameterProblems(given(["leaseMs=40000", "heartbeatMs=10000"])), []);
    assert.deepEqual(parameterProblems(given(["workerCpu=256", "workerMemory=512"])), []);
  });

  for (const [param, problem] of REFUSED) {
    it(`refuse ${param}`, () => {
      const problems = parameterProblems(given([param]));
      assert.equal(problems.length, 1, problems.join("\n"));
      assert.match(problems[0] ?? "", problem);
    });
  }

  it("are each refused with something, so that none is unchecked", () => {
    // These are checked with others, or take any value in range.
    const others = ["skewMs", "attemptTimeoutMs", "maxParkMs", "maxConnections", "acquireBudgetMs", "quietQueueMs"];
    const tried = new Set(REFUSED.map(([param]) => param.split("=")[0] ?? ""));
    assert.deepEqual(
      PARAMETER_NAMES.filter((name) => !tried.has(name) && !others.includes(name)),
      [],
    );
    for (const name of others) assert.notDeepEqual(parameterProblems(given([`${name}=-1`])), [], name);
  });

  it("stop the framework with all their problems at once", async () => {
    await assert.rejects(packageService(["leasMs=1", "workerCpu=3"], "Some"), (error: Error) => {
      assert.match(error.message, /parameters refused:\n\s+- stage "Some": .*\n\s+- leasMs: .*\n\s+- workerCpu="3": /);
      return true;
    });
  });
});

describe("stages", () => {
  it("fit into every name that they are part of", () => {
    for (const stage of ["dev", "prod-2", "a".repeat(32)]) assert.deepEqual(stageProblems(stage), [], stage);
    for (const stage of ["Prod", "a--b", "-a", "a-", "a_b", "", "a".repeat(33)]) {
      assert.equal(stageProblems(stage).length, 1, stage);
    }
  });
});
