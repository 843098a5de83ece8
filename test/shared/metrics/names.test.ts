import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { CONTROL_METRICS, METRICS_NAMESPACE, METRIC_UNITS, WORKER_METRICS } from "../../../shared/metrics/names.ts";

describe("metric names", () => {
  it("both planes' roles may publish to this namespace and no other", () => {
    const allowed = ["function-roles.yml", "worker-roles.yml"].flatMap((file) => {
      const text = readFileSync(`${import.meta.dirname}/../../../deploy/resources/${file}`, "utf8");
      const found = [...text.matchAll(/cloudwatch:namespace: *(\w+)/g)].map(([, namespace]) => namespace);
      assert.ok(found.length > 0, file);
      return found;
    });
    for (const namespace of allowed) assert.equal(namespace, METRICS_NAMESPACE);
  });

  it("a name that both planes publish means the same in both", () => {
    const control: Record<string, string> = CONTROL_METRICS;
    for (const [name, unit] of Object.entries(WORKER_METRICS)) {
      if (name in control) assert.equal(control[name], unit);
      assert.equal(METRIC_UNITS[name as keyof typeof METRIC_UNITS], unit);
    }
  });
});
