import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { settingProblems } from "../../../deploy/plugins/check-parameters.ts";
import { containerEnvironment, workerContainer } from "../../../deploy/plugins/container-environment.ts";
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

  describe("the check of the packaged template", () => {
    it("passes it as it is", () => {
      assert.deepEqual(settingProblems(template), []);
    });

    it("refuses a setting that no worker knows", () => {
      const copy = structuredClone(template);
      workerContainer(copy).Environment.push({ Name: "WS_FLEET_LEASE", Value: "9000" });
      assert.deepEqual(settingProblems(copy), ["WS_FLEET_LEASE: no such setting"]);
    });
  });
}
