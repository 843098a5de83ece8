import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { tableNames } from "../../../deploy/plugins/kept-tables.ts";
import { propertiesOf, type Template } from "../../../deploy/plugins/osls.ts";
import { assertPinned } from "../support/pinned.ts";
import { ResourceSchemas } from "../support/schema.ts";

/** A new revision or a new permission harms nobody. */
const HARMLESS = new Set(["AWS::ECS::TaskDefinition", "AWS::Lambda::Permission"]);

/**
 * Properties whose change replaces a resource: a table would be lost, a named service or function could not be replaced
 * at all, a stream's mapping would skip what happened meanwhile. They are pinned, so that such a change is seen and
 * planned.
 */
export function redeploySuite(template: Template, changed: Template): void {
  describe("a redeployment", () => {
    it("replaces nothing", () => {
      const replacing = Object.entries(new ResourceSchemas().replacing(template)).filter(
        ([place]) => !HARMLESS.has(template.Resources[place.split(".")[0] ?? ""]?.Type ?? ""),
      );
      assertPinned("replacing", Object.fromEntries(replacing));
    });

    it("with other parameters has the same resources, and replaces nothing but revisions of the task", () => {
      assert.deepEqual(Object.keys(changed.Resources), Object.keys(template.Resources));
      const schemas = new ResourceSchemas();
      const [before, after] = [schemas.replacing(template), schemas.replacing(changed)];
      const replaced = Object.keys(before).filter((place) => !isDeepStrictEqual(before[place], after[place]));
      assert.deepEqual([...new Set(replaced.map((place) => place.split(".")[0]))], ["WorkerTask"]);
    });

    it("keeps indexes and the stream, of which an update can change only one at a time", () => {
      const { GlobalSecondaryIndexes, StreamSpecification } = propertiesOf(template, "ConnectionsTable");
      assert.deepEqual(
        (GlobalSecondaryIndexes as { IndexName: string }[]).map(({ IndexName }) => IndexName),
        ["by_state", "by_owner"],
      );
      assert.deepEqual(StreamSpecification, { StreamViewType: "NEW_AND_OLD_IMAGES" });
    });

    it("keeps tables that are not of a throw-away stage, whatever happens to the stack", () => {
      for (const table of ["ConnectionsTable", "MessagesTable"]) {
        const { DeletionPolicy, UpdateReplacePolicy, Properties } = template.Resources[table] as unknown as {
          DeletionPolicy: string;
          UpdateReplacePolicy: string;
          Properties: Record<string, unknown>;
        };
        assert.ok(tableNames("ws-fleet", "some").includes(String(Properties["TableName"])), table);
        assert.deepEqual([DeletionPolicy, UpdateReplacePolicy], ["Retain", "Retain"], table);
        assert.equal(Properties["DeletionProtectionEnabled"], true, table);
        assert.deepEqual(Properties["PointInTimeRecoverySpecification"], { PointInTimeRecoveryEnabled: true }, table);
        assert.deepEqual(Properties["SSESpecification"], { SSEEnabled: true }, table);
      }
    });

    it("reserves concurrency for schedules that must not run beside themselves, unless told not to", () => {
      for (const id of ["Reconcile", "FleetDashmetrics", "Audit"]) {
        const { ReservedConcurrentExecutions } = propertiesOf(template, `${id}LambdaFunction`);
        const reserved = { "Fn::If": ["ReserveConcurrency", 1, { Ref: "AWS::NoValue" }] };
        assert.deepEqual(ReservedConcurrentExecutions, reserved, id);
      }
    });
  });
}
