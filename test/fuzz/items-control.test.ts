import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { auditConnections } from "../../functions/core/audit-connections.ts";
import { countFleet } from "../../functions/core/count-fleet.ts";
import { FreeSince } from "../../functions/core/free-since.ts";
import { RecentHints } from "../../functions/core/recent-hints.ts";
import { sweep } from "../../functions/core/sweep.ts";
import { checkConnectionId, leaseOf, type RawItem } from "../../shared/connection/item.ts";
import { parseHint, type Hint } from "../../shared/hints/hint.ts";
import { silentLogger } from "../../shared/logger.ts";
import { queryOrphans } from "../../shared/orphans.ts";
import type { FakeConnections } from "../support/fake-connections.ts";
import { anyConnection, put, text } from "./support/attributes.ts";
import { emptyTable } from "./support/stores.ts";

const SKEW_MS = 1000;
const LEASE_MS = 20_000;
const MAX_PARK_MS = 3_600_000;

/** A table with whatever a producer may have put there, under ids of any kind. */
const anyTable = fc.uniqueArray(fc.tuple(fc.oneof(text, fc.uuid()), anyConnection), {
  selector: ([id]) => id,
  maxLength: 8,
});

/** A hint carries whole milliseconds. */
const FRACTION: RawItem = { desired_state: { S: "STARTED" }, lease_expires_at_ms: { N: "1.5" } };

async function tableWith(rows: readonly (readonly [string, RawItem])[]): Promise<FakeConnections> {
  const store = emptyTable();
  for (const [id, item] of rows) await put(store.table, { ...item, connection_id: { S: id } });
  return store;
}

const itemsOf = ({ dynamoDb, table }: FakeConnections): RawItem[] => dynamoDb.items(table.tableName);
const startedOf = (store: FakeConnections): RawItem[] =>
  itemsOf(store).filter(
    (item) => item["desired_state"]?.S === "STARTED" && item["lease_expires_at_ms"]?.N !== undefined,
  );

async function swept(store: FakeConnections): Promise<Hint[]> {
  const hints: Hint[] = [];
  const queue = {
    depth: () => Promise.resolve(0),
    sendBatch: (bodies: readonly string[]) => {
      for (const body of bodies) {
        const hint = parseHint(body);
        assert.ok(!("problem" in hint), `no worker can read ${body}: ${JSON.stringify(hint)}`);
        hints.push(hint);
      }
      return Promise.resolve([]);
    },
  };
  await sweep(
    {
      table: store.table,
      queue,
      recent: new RecentHints(10_000, 1000),
      nowMs: () => store.clock.wallMs(),
      logger: silentLogger,
    },
    { skewMs: SKEW_MS, pageSize: 3, maxHints: 1000, inFlight: 2 },
  );
  return hints;
}

describe("whatever is in the connections table", () => {
  it("the sweep hints each orphan with a sound id once, in a form that workers read", () =>
    fc.assert(
      fc.asyncProperty(anyTable, async (rows) => {
        const store = await tableWith(rows);
        const takeableMs = store.clock.wallMs() - SKEW_MS - 1000;
        const orphans = startedOf(store)
          .filter((item) => Number(item["lease_expires_at_ms"]?.N) < takeableMs)
          .map((item) => item["connection_id"]?.S ?? "")
          .filter((id) => checkConnectionId(id) === undefined);
        const hinted = (await swept(store)).map(({ connectionId }) => connectionId);
        assert.deepEqual(hinted.sort(), orphans.sort());
      }),
      { numRuns: 400, examples: [[[["c", FRACTION]]]] },
    ));

  it("the orphan query gives rows of the promised types", () =>
    fc.assert(
      fc.asyncProperty(anyTable, async (rows) => {
        const store = await tableWith(rows);
        const query = { nowMs: store.clock.wallMs(), skewMs: SKEW_MS, pageSize: 2 };
        for await (const { connectionId, expiredAtMs } of queryOrphans(store.table, query)) {
          assert.equal(typeof connectionId, "string");
          assert.ok(Number.isFinite(expiredAtMs) && expiredAtMs < query.nowMs, `${expiredAtMs}`);
        }
      }),
      { numRuns: 200 },
    ));

  it("the audit leaves no item that the index cannot show, and mends what it mends only once", () =>
    fc.assert(
      fc.asyncProperty(anyTable, async (rows) => {
        const store = await tableWith(rows);
        const owners = new Map(itemsOf(store).map((item) => [item["connection_id"]?.S, item["lease_owner"]?.S]));
        const audit = () => {
          const { clock, table } = store;
          const deps = { table, clock, nowMs: () => clock.wallMs(), remainingMs: () => 60_000, logger: silentLogger };
          const pace = { pageSize: 3, itemsPerSecond: Infinity };
          return auditConnections(deps, { leaseMs: LEASE_MS, maxParkMs: MAX_PARK_MS, ...pace });
        };
        const { scanned, failed, complete } = await audit();
        assert.deepEqual([scanned, failed, complete], [itemsOf(store).length, 0, true]);
        const furthestMs = store.clock.wallMs() + MAX_PARK_MS + 60_000;
        for (const item of itemsOf(store)) {
          const { expiresAtMs, owner } = leaseOf(item);
          assert.ok(expiresAtMs !== undefined && expiresAtMs <= furthestMs, JSON.stringify(item));
          assert.equal(owner, owners.get(item["connection_id"]?.S), "an audit takes nothing away from anybody");
        }
        assert.equal((await audit()).mended, 0);
      }),
      { numRuns: 300 },
    ));

  it("the fleet's counts are whole, and no connection is counted twice", () =>
    fc.assert(
      fc.asyncProperty(anyTable, async (rows) => {
        const store = await tableWith(rows);
        const request = { nowMs: store.clock.wallMs(), skewMs: SKEW_MS, pageSize: 3 };
        const counts = await countFleet(store.table, new FreeSince(100), request);
        for (const [name, value] of Object.entries(counts)) assert.ok(Number.isFinite(value) && value >= 0, name);
        assert.equal(counts.started, startedOf(store).length);
        assert.ok(counts.owned + counts.orphaned + counts.parked <= counts.started, JSON.stringify(counts));
      }),
      { numRuns: 300 },
    ));
});
