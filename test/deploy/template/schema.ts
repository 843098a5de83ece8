import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Template } from "../../../deploy/plugins/osls.ts";
import { ResourceSchemas } from "../support/schema.ts";

/** Against the resource schemas that AWS publishes. */
export function schemaSuite(template: Template, changed: Template): void {
  const schemas = new ResourceSchemas();

  describe("the template and AWS's resource schemas", () => {
    it("has no unknown type or property, none missing, none of a wrong type", () => {
      assert.deepEqual(schemas.problems(template), []);
      assert.deepEqual(schemas.problems(changed), [], "with other parameters");
    });

    it("would show a planted fault of each kind", () => {
      const planted = structuredClone(template);
      const change = (id: string, changes: Record<string, unknown>): void => {
        Object.assign(planted.Resources[id]?.Properties ?? {}, changes);
      };
      planted.Resources["Extra"] = { Type: "AWS::SQS::Pond" };
      change("HintQueue", { VisibilityTimeOut: 3 });
      change("ConnectionsTable", { KeySchema: undefined });
      change("WorkerService", { DeploymentConfiguration: { MaximumPercent: "twice" } });
      change("WorkerSecurityGroup", { SecurityGroupEgress: [{ CidrIp: "0.0.0.0/0" }] });
      assert.deepEqual(schemas.problems(planted).sort(), [
        "ConnectionsTable.KeySchema: is required",
        "Extra: AWS::SQS::Pond is no type",
        "HintQueue.VisibilityTimeOut: no such property",
        "WorkerSecurityGroup.SecurityGroupEgress.0.IpProtocol: is required",
        "WorkerService.DeploymentConfiguration.MaximumPercent: must be a whole number",
      ]);
    });

    it("refers only to what it defines", () => {
      const known = new Set([...Object.keys(template.Resources), ...Object.keys(template.Parameters ?? {})]);
      const unknown = referencesIn(template.Resources).filter((name) => !name.startsWith("AWS::") && !known.has(name));
      assert.deepEqual(unknown, []);
    });
  });
}

/** Logical ids named by Ref, Fn::GetAtt, Fn::Sub and DependsOn. */
function referencesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    if (key === "Ref" && typeof inner === "string") return [inner];
    if (key === "Fn::GetAtt" && Array.isArray(inner)) return [String(inner[0])];
    if (key === "Fn::Sub" && typeof inner === "string") {
      return [...inner.matchAll(/\$\{([^!}.]+)[^}]*\}/g)].map((match) => match[1] ?? "");
    }
    if (key === "DependsOn") return [inner].flat().map(String);
    return referencesIn(inner);
  });
}
