import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { releaseDeadTask } from "../../functions/core/release-dead-task.ts";
import { parseTaskStateChange } from "../../functions/core/task-state-change.ts";
import { acquire } from "../../shared/lease/index.ts";
import { fakeConnections } from "../support/fake-connections.ts";
import type { FaultHook } from "../support/fake-dynamodb/fake-dynamodb.ts";
import { VirtualClock } from "../support/virtual-clock.ts";
import { connection, ownedBy, store, stored } from "./support/connections.ts";
import { CLUSTER_ARN, crashedTask, TASK_ID, taskEvent } from "./support/ecs-events.ts";
import { recordingLogger } from "./support/log.ts";

const SECOND_PASS_AFTER_MS = 1_000;

function bed(options: { faults?: FaultHook; indexLagMs?: number } = {}) {
  const clock = new VirtualClock();
  const { table, dynamoDb } = fakeConnections({ clock, ...options });
  const logger = recordingLogger();
  const handle = (event: unknown) =>
    releaseDeadTask(
      { table, clock, logger },
      {
        detail: parseTaskStateChange(event),
        ours: { cluster: CLUSTER_ARN, service: "ws-fleet-test" },
        perSecond: 300,
        attempts: 3,
        secondPassAfterMs: SECOND_PASS_AFTER_MS,
      },
    );
  return { clock, table, dynamoDb, logger, handle };
}

describe("releaseDeadTask", () => {
  it("takes a second look, for an acquire that landed after the first", async () => {
    const { clock, table, handle } = bed();
    await store(table, connection("early", ownedBy(TASK_ID, clock.wallMs() + 20_000)), connection("late"));
    const done = handle(crashedTask());
    await clock.advance(SECOND_PASS_AFTER_MS - 1);
    assert.equal((await stored(table, "early"))?.["lease_owner"], undefined, "freed in the first pass");
    const landed = await acquire(table, {
      connectionId: "late",
      owner: TASK_ID,
      nowMs: clock.wallMs(),
      leaseMs: 20_000,
      skewMs: 1_000,
    });
    assert.equal(landed.kind, "held");
    await clock.advance(10_000);
    assert.deepEqual(await done, { released: 2, skipped: 0, failed: 0 });
    assert.equal((await stored(table, "late"))?.["lease_owner"], undefined);
  });

  it("takes a second look, for leases that the index did not show yet", async () => {
    const { clock, table, handle } = bed({ indexLagMs: 500 });
    await store(table, connection("c-1", ownedBy(TASK_ID, clock.wallMs() + 20_000)));
    const done = handle(crashedTask());
    await clock.advance(10_000);
    assert.deepEqual(await done, { released: 1, skipped: 0, failed: 0 });
  });

  it("is harmless for a lease that another task took meanwhile, though the index still shows the dead one", async () => {
    const { clock, table, dynamoDb, handle } = bed();
    await store(table, connection("c-1", ownedBy(TASK_ID, 1_000)));
    dynamoDb.indexLagMs = 60_000;
    const taken = await acquire(table, {
      connectionId: "c-1",
      owner: "task-alive",
      nowMs: clock.wallMs(),
      leaseMs: 20_000,
      skewMs: 1_000,
    });
    assert.equal(taken.kind, "held");
    const before = await stored(table, "c-1");
    const done = handle(crashedTask());
    await clock.advance(10_000);
    assert.deepEqual(await done, { released: 0, skipped: 2, failed: 0 });
    assert.deepEqual(await stored(table, "c-1"), before);
  });

  it("tries again in the second pass what a throttled first one could not do", async () => {
    const { clock, table, dynamoDb, logger, handle } = bed();
    await store(table, connection("c-1", ownedBy(TASK_ID, clock.wallMs() + 20_000)));
    dynamoDb.faults = ({ operation }) => (operation === "Query" ? { kind: "throttle" } : undefined);
    const done = handle(crashedTask());
    await clock.advance(SECOND_PASS_AFTER_MS - 1);
    dynamoDb.faults = undefined;
    await clock.advance(10_000);
    assert.deepEqual(await done, { released: 1, skipped: 0, failed: 0 });
    assert.ok(logger.lines.some(({ level, message }) => level === "warn" && message.startsWith("first pass")));
  });

  it("fails when the index cannot be read at all, so that the event comes again", async () => {
    const { clock, table, handle } = bed({
      faults: ({ operation }) => (operation === "Query" ? { kind: "throttle" } : undefined),
    });
    await store(table, connection("c-1", ownedBy(TASK_ID, clock.wallMs() + 20_000)));
    const outcome = assert.rejects(handle(crashedTask()), { name: "ProvisionedThroughputExceededException" });
    await clock.advance(10_000);
    await outcome;
  });

  it("says how many leases it had to leave to expire", async () => {
    const { clock, table, logger, handle } = bed({
      faults: ({ operation }) => (operation === "UpdateItem" ? { kind: "throttle" } : undefined),
    });
    await store(table, connection("c-1", ownedBy(TASK_ID, clock.wallMs() + 20_000)));
    const done = handle(crashedTask());
    await clock.advance(30_000);
    assert.deepEqual(await done, { released: 0, skipped: 0, failed: 1 });
    const line = logger.lines.at(-1);
    assert.deepEqual([line?.level, line?.fields["failed"], line?.fields["task"]], ["warn", 1, TASK_ID]);
  });

  it("asks the table nothing for a task that is not proven dead, or not ours", async () => {
    const { handle, logger } = bed({ faults: () => assert.fail("no request is due") });
    assert.equal(await handle(taskEvent("STOPPED", "STOPPING", { lastStatus: "RUNNING" })), undefined);
    assert.equal(await handle(crashedTask({ group: "service:other" })), undefined);
    assert.match(String(logger.lines[0]?.fields["reason"]), /detail\.lastStatus/);
    assert.deepEqual([logger.lines[0]?.level, logger.lines[1]?.level], ["info", "debug"]);
  });
});
