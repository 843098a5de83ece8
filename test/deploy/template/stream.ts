import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { propertiesOf, type Template } from "../../../deploy/plugins/osls.ts";
import { compileAlternatives } from "../../../local/triggers/filter-pattern.ts";
import {
  acquire,
  deleteConnection,
  park,
  release,
  releaseOf,
  renew,
  start,
  stop,
  type LeaseTable,
} from "../../../shared/lease/index.ts";
import { SystemClock } from "../../../shared/clock.ts";
import { connection, store } from "../../functions/support/connections.ts";
import { streamRecords } from "../../functions/support/stream.ts";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../../support/embedded-dynamodb.ts";

const ID = "c-1";
const OWNER = "task-1";

/** The stream's trigger, its filter against what the lease operations really put on a stream. */
export function streamSuite(template: Template): void {
  const [mapping, ...others] = Object.values(template.Resources).filter(
    ({ Type }) => Type === "AWS::Lambda::EventSourceMapping",
  );
  const properties = mapping?.Properties ?? {};

  describe("the stream's trigger", () => {
    it("is one, and reports, bisects, gives up in time and tells where", () => {
      assert.deepEqual(others, []);
      const { EventSourceArn, FilterCriteria, FunctionName, ...limits } = properties;
      assert.deepEqual(EventSourceArn, { "Fn::GetAtt": ["ConnectionsTable", "StreamArn"] });
      assert.deepEqual(FunctionName, { "Fn::GetAtt": ["DesiredDashstateLambdaFunction", "Arn"] });
      assert.ok(FilterCriteria);
      assert.deepEqual(limits, {
        BatchSize: 100,
        BisectBatchOnFunctionError: true,
        DestinationConfig: { OnFailure: { Destination: { "Fn::GetAtt": ["DesiredStateFailureQueue", "Arn"] } } },
        Enabled: true,
        FunctionResponseTypes: ["ReportBatchItemFailures"],
        MaximumRecordAgeInSeconds: 60,
        MaximumRetryAttempts: 5,
        StartingPosition: "LATEST",
      });
      assert.deepEqual(propertiesOf(template, "ConnectionsTable")["StreamSpecification"], {
        StreamViewType: "NEW_AND_OLD_IMAGES",
      });
    });

    describe("lets through, of what is recorded on a stream,", () => {
      const { Filters } = properties["FilterCriteria"] as { Filters: { Pattern: string }[] };
      const patterns = Filters.map(({ Pattern }) => JSON.parse(Pattern) as unknown);
      const matches = compileAlternatives(patterns, { at: "FilterCriteria", numbersAreText: true });

      let dynamoDb: EmbeddedDynamoDb;
      let table: LeaseTable;
      let seen = 0;
      before(async () => {
        dynamoDb = await startEmbeddedDynamoDb();
        const tableName = await dynamoDb.createTable("ConnectionsTable", { stream: true });
        table = { client: dynamoDb.client, tableName };
      });
      after(() => dynamoDb.stop());

      /** Does it, and judges the one record that it left on the stream. */
      const invoked = async (act: () => Promise<unknown>): Promise<boolean> => {
        await act();
        const records = await streamRecords(table, dynamoDb.endpoint);
        const fresh = records.slice(seen);
        seen = records.length;
        assert.equal(fresh.length, 1, "one write, one record");
        return matches(fresh[0]);
      };
      const take = async () => {
        const request = { connectionId: ID, owner: OWNER, nowMs: Date.now(), leaseMs: 20_000, skewMs: 1_000 };
        const outcome = await acquire(table, request);
        if (outcome.kind !== "held") assert.fail(`not held: ${outcome.reason}`);
        return { connectionId: ID, owner: OWNER, epoch: outcome.value.epoch };
      };
      const holder = { connectionId: ID, owner: OWNER, epoch: 0n };

      it("a start", async () => {
        assert.equal(await invoked(() => start(table, { connectionId: ID, wsUrl: "wss://feed.test/" })), true);
      });
      it("no acquire", async () => {
        assert.equal(await invoked(async () => Object.assign(holder, await take())), false);
      });
      it("no heartbeat, with or without a checkpoint", async () => {
        const expiresAtMs = Date.now() + 30_000;
        assert.equal(await invoked(() => renew(table, { ...holder, expiresAtMs })), false);
        const checkpoint = { lastSeq: 7n };
        assert.equal(await invoked(() => renew(table, { ...holder, expiresAtMs: expiresAtMs + 5, checkpoint })), false);
      });
      it("a release", async () => {
        assert.equal(await invoked(() => release(table, holder)), true);
      });
      it("no park", async () => {
        await invoked(async () => Object.assign(holder, await take()));
        const parked = { ...holder, untilMs: Date.now() + 60_000, error: "refused" };
        assert.equal(await invoked(() => park(table, parked)), false);
      });
      it("a start that ends a park", async () => {
        assert.equal(await invoked(() => start(table, { connectionId: ID, wsUrl: "wss://feed.test/" })), true);
      });
      it("a release for a dead task", async () => {
        await invoked(async () => Object.assign(holder, await take()));
        const clock = new SystemClock();
        const request = { deadTask: OWNER, perSecond: 100, attempts: 3 };
        assert.equal(await invoked(() => releaseOf({ table, clock }, request)), true);
      });
      it("no stop", async () => {
        assert.equal(await invoked(() => stop(table, ID)), false);
      });
      it("no deletion", async () => {
        assert.equal(
          await invoked(() => deleteConnection(table, { connectionId: ID, nowMs: Date.now(), skewMs: 1_000 })),
          false,
        );
      });
      it("an item without an expiry, if it should run", async () => {
        const without = { lease_expires_at_ms: undefined };
        assert.equal(await invoked(() => store(table, connection("c-2", without))), true);
        const stopped = { ...without, desired_state: { S: "STOPPED" } };
        assert.equal(await invoked(() => store(table, connection("c-3", stopped))), false);
      });
    });
  });
}
