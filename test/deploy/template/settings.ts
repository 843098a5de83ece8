import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parameterProblems } from "../../../deploy/plugins/check-parameters.ts";
import { containerEnvironment } from "../../../deploy/plugins/container-environment.ts";
import { propertiesOf, type Template } from "../../../deploy/plugins/osls.ts";
import { compileSettings } from "../../../shared/config/compile.ts";
import { DEFINITIONS, TIMING_DEFINITIONS, type SettingName } from "../../../shared/config/definitions.ts";
import { workerSettings } from "../../../worker/settings.ts";

const DEFAULTS = new Map<string, string | undefined>(Object.values(DEFINITIONS).map((one) => [one.env, one.default]));
const TIMINGS = Object.values(TIMING_DEFINITIONS).map(({ env }) => env);

export function settingsSuite(template: Template): void {
  const worker = containerEnvironment(template, (reference) => `https://${JSON.stringify(reference).length}.example`);
  const functions = Object.entries(template.Resources)
    .filter(([, { Type }]) => Type === "AWS::Lambda::Function")
    .map(([id]) => {
      const { Variables } = propertiesOf(template, id)["Environment"] as { Variables: Record<string, unknown> };
      return [id, Variables] as const;
    });

  describe("settings in the template", () => {
    it("are those that the code knows, and a worker starts with them", () => {
      const settings = workerSettings(worker);
      assert.equal(settings.serviceName, "ws-fleet-some");
      for (const [id, variables] of functions) {
        const unknown = Object.keys(variables).filter((name) => name.startsWith("WS_FLEET_") && !DEFAULTS.has(name));
        assert.deepEqual(unknown, [], id);
      }
    });

    it("repeat the defaults of the code and name no others", () => {
      const repeated = [["worker", worker] as const, ...functions].flatMap(([id, variables]) =>
        Object.entries(variables)
          .filter(([name, value]) => DEFAULTS.get(name) !== undefined && DEFAULTS.get(name) !== value)
          .map(([name, value]) => `${id}: ${name} is ${String(value)}, by default ${String(DEFAULTS.get(name))}`),
      );
      assert.deepEqual(repeated, []);
    });

    it("carry the timings that both planes must agree on to every program", () => {
      for (const [id, variables] of [["worker", worker] as const, ...functions]) {
        for (const name of TIMINGS) assert.ok(name in variables, `${id} lacks ${name}`);
      }
    });

    it("hold together: the functions' compile as well", () => {
      const [, variables] = functions[0] ?? [];
      const text = Object.fromEntries(
        Object.entries(variables ?? {}).map(([name, value]) => [
          name,
          typeof value === "string" ? value : "https://queue.example",
        ]),
      );
      assert.equal(compileSettings(text, Object.keys(TIMING_DEFINITIONS) as SettingName[]).leaseMs, 20_000);
    });

    it("appear in seconds where AWS counts in seconds", () => {
      const queue = propertiesOf(template, "HintQueue");
      assert.equal(worker["WS_FLEET_HINT_VISIBILITY_MS"], `${String(queue["VisibilityTimeout"])}000`);
      assert.equal(worker["WS_FLEET_LONG_POLL_MS"], `${String(queue["ReceiveMessageWaitTimeSeconds"])}000`);
      const [container] = propertiesOf(template, "WorkerTask")["ContainerDefinitions"] as { StopTimeout: number }[];
      assert.equal(worker["WS_FLEET_STOP_TIMEOUT_MS"], `${container?.StopTimeout}000`);
    });
  });

  describe("the check of parameters", () => {
    it("passes the template as it is", () => {
      assert.deepEqual(parameterProblems(template), []);
    });

    const refused: readonly (readonly [string, (copy: Template) => void, RegExp])[] = [
      [
        "a lease too short for its heartbeats",
        (copy) => setVariable(copy, "WS_FLEET_LEASE_MS", "9000"),
        /WS_FLEET_LEASE_MS.*lease − margin/,
      ],
      [
        "a target above 80 % of the cap",
        (copy) => setVariable(copy, "WS_FLEET_TARGET_CONNECTIONS", "900"),
        /80 % of the cap/,
      ],
      ["a VPC without subnets", (copy) => setParameter(copy, "VpcId", "vpc-0a1b2c3d"), /vpcId, subnetIds: give both/],
      ["a topic that is none", (copy) => setParameter(copy, "AlarmTopicArn", "alarms"), /alarmTopicArn: must be/],
      [
        "fewer tasks at most than at least",
        (copy) => Object.assign(propertiesOf(copy, "WorkerScaling"), { MaxCapacity: "1" }),
        /maxTasks: must be .* at least minTasks/,
      ],
      [
        "no task at all",
        (copy) => Object.assign(propertiesOf(copy, "WorkerScaling"), { MinCapacity: 0 }),
        /minTasks: must be .* at least 1/,
      ],
    ];
    for (const [what, change, message] of refused) {
      it(`refuses ${what}`, () => {
        const copy = structuredClone(template);
        change(copy);
        const problems = parameterProblems(copy);
        assert.equal(problems.length, 1, problems.join("\n"));
        assert.match(problems[0] ?? "", message);
      });
    }
  });
}

function setVariable(template: Template, name: string, value: string): void {
  const [container] = propertiesOf(template, "WorkerTask")["ContainerDefinitions"] as {
    Environment: { Name: string; Value: unknown }[];
  }[];
  const variable = container?.Environment.find(({ Name }) => Name === name);
  assert.ok(variable);
  variable.Value = value;
}

function setParameter(template: Template, name: string, value: string): void {
  const parameter = template.Parameters?.[name] as { Default: unknown } | undefined;
  assert.ok(parameter);
  parameter.Default = value;
}
