import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readFileSync } from "node:fs";
import path from "node:path";
import { propertiesOf, type Template } from "../../../deploy/plugins/osls.ts";
import { EXAMPLE } from "../../../docs/cost-table.ts";
import { PRICES } from "../../../docs/prices.ts";
import { METRIC_UNITS, METRICS_NAMESPACE } from "../../../shared/metrics/names.ts";
import { PROJECT_ROOT } from "../support/package.ts";
import { assertPinned } from "../support/pinned.ts";

/** Alarms and dashboard name metrics that exist. */
export function observeSuite(template: Template): void {
  const alarms = Object.entries(template.Resources).filter(([, { Type }]) => Type === "AWS::CloudWatch::Alarm");
  const { "Fn::Sub": body } = propertiesOf(template, "Dashboard")["DashboardBody"] as { "Fn::Sub": string };
  const functions = Object.keys(template.Resources).filter((id) => id.endsWith("LambdaFunction"));

  describe("alarms", () => {
    it("watch metrics that are published, for this service", () => {
      const own = alarms.filter(([, { Properties }]) => Properties?.["Namespace"] === METRICS_NAMESPACE);
      assert.equal(own.length, 4);
      for (const [id, { Properties }] of own) {
        assert.ok(String(Properties?.["MetricName"]) in METRIC_UNITS, id);
        assert.deepEqual(Properties?.["Dimensions"], [{ Name: "Service", Value: "ws-fleet-some" }], id);
      }
    });

    it("ring as pinned/alarms.json says", () => {
      const rings = alarms.map(([id, { Properties }]) => {
        const { AlarmActions: _, OKActions: __, AlarmDescription: ___, ...when } = Properties ?? {};
        return [id, when] as const;
      });
      assertPinned("alarms", Object.fromEntries(rings));
    });

    it("take missing data as bad exactly where silence means that nobody is there", () => {
      const breaching = alarms.filter(([, { Properties }]) => Properties?.["TreatMissingData"] === "breaching");
      assert.deepEqual(breaching.map(([id]) => id).sort(), ["NoWorkersAlarm", "OrphansAlarm"]);
    });

    it("watch every function and every queue that should stay empty", () => {
      const watched = JSON.stringify(alarms);
      for (const id of functions) assert.ok(watched.includes(`{"Ref":"${id}"}`), id);
      for (const id of ["HintDeadLetterQueue", "DesiredStateFailureQueue"]) assert.ok(watched.includes(id), id);
    });

    it("are as many as the cost calculation pays for", () => {
      assert.equal(alarms.length, EXAMPLE.alarms);
      const { Cpu, Memory } = propertiesOf(template, "WorkerTask");
      assert.deepEqual([Number(Cpu) / 1024, Number(Memory) / 1024], [EXAMPLE.taskVcpu, EXAMPLE.taskGb]);
    });

    it("tell the topic when there is one", () => {
      const notified = { "Fn::If": ["AlarmTopic", [{ Ref: "AlarmTopicArn" }], { Ref: "AWS::NoValue" }] };
      for (const [id, { Properties }] of alarms) {
        assert.deepEqual(Properties?.["AlarmActions"], notified, id);
        assert.deepEqual(Properties["OKActions"], notified, id);
      }
    });

    it("have a section in the runbook each", () => {
      const runbook = readFileSync(path.join(PROJECT_ROOT, "docs/operations.md"), "utf8");
      const missing = alarms.map(([id]) => id).filter((id) => !runbook.includes(`\`${id}\``));
      assert.deepEqual(missing, []);
    });
  });

  describe("the dashboard", () => {
    const dashboard = JSON.parse(body.replaceAll(/\$\{[^}]*\}/g, "x")) as {
      widgets: { properties: { metrics?: unknown[][] } }[];
    };

    it("shows metrics that are published", () => {
      let namespace = "";
      for (const row of dashboard.widgets.flatMap(({ properties }) => properties.metrics ?? [])) {
        const [first, second] = row;
        if (typeof first !== "string" || first === "...") continue;
        if (first !== ".") namespace = first;
        if (namespace === METRICS_NAMESPACE) assert.ok(String(second) in METRIC_UNITS, String(second));
      }
      assert.ok(dashboard.widgets.length > 9);
    });

    it("counts with the prices of the cost calculation", () => {
      const { arm64GbHour, arm64VcpuHour, publicIpHour, readMillion, writeMillion } = PRICES;
      assert.ok(body.includes(`* ${writeMillion} / 1000000`));
      assert.ok(body.includes(`* ${readMillion} / 1000000`));
      assert.ok(body.includes(`(512 / 1024 * ${arm64VcpuHour} + 1024 / 1024 * ${arm64GbHour} + ${publicIpHour})`));
      for (const price of body.matchAll(/([\d.]+) \/ 1000000/g)) {
        assert.ok(([writeMillion, readMillion] as number[]).includes(Number(price[1])), price[0]);
      }
    });
  });
}
