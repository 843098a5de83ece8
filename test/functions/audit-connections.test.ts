import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { auditConnections, type AuditRequest } from "../../functions/core/audit-connections.ts";
import { AnchoredClock } from "../../shared/clock.ts";
import type { RawItem } from "../../shared/connection/item.ts";
import { queryOrphans } from "../../shared/orphans.ts";
import { fakeConnections } from "../support/fake-connections.ts";
import type { FaultHook } from "../support/fake-dynamodb/fake-dynamodb.ts";
import { VirtualClock } from "../support/virtual-clock.ts";
import { connection, expiry, ownedBy, STOPPED, store, stored } from "./support/connections.ts";
import { recordingLogger } from "./support/log.ts";

const LEASE_MS = 20_000;
const MAX_PARK_MS = 3_600_000;
const FURTHEST_MS = MAX_PARK_MS + 60_000;

const REQUEST: AuditRequest = { leaseMs: LEASE_MS, maxParkMs: MAX_PARK_MS, pageSize: 3, itemsPerSecond: 100 };

function bed(options: { faults?: FaultHook; timeoutMs?: number } = {}) {
  const clock = new VirtualClock();
  const { table, dynamoDb } = fakeConnections({ clock });
  if (options.faults !== undefined) dynamoDb.faults = options.faults;
  const logger = recordingLogger();
  const timeoutMs = options.timeoutMs ?? 840_000;
  const anchored = new AnchoredClock(clock);
  const begin = (changes: Partial<AuditRequest> = {}) => {
    const beganMs = clock.monotonicMs();
    return auditConnections(
      {
        table,
        clock,
        logger,
        nowMs: () => anchored.nowMs(),
        remainingMs: () => beganMs + timeoutMs - clock.monotonicMs(),
      },
      { ...REQUEST, ...changes },
    );
  };
  const audit = async (changes: Partial<AuditRequest> = {}) => {
    const done = begin(changes);
    await clock.advance(timeoutMs);
    return done;
  };
  return { clock, table, dynamoDb, logger, begin, audit };
}

const NO_EXPIRY = { lease_expires_at_ms: undefined };
const owner = (id: string): RawItem => ({ lease_owner: { S: id }, lease_epoch: { N: "7" } });

describe("auditConnections", () => {
  it("mends what the index cannot show and what it would never show, and nothing else", async () => {
    const { clock, table, audit } = bed();
    const nowMs = clock.wallMs();
    const sound = [
      connection("free"),
      connection("expired", ownedBy("t", nowMs - 900_000)),
      connection("held", ownedBy("t", nowMs + LEASE_MS)),
      connection("parked-longest", expiry(nowMs + MAX_PARK_MS)),
      connection("at-the-limit", expiry(nowMs + FURTHEST_MS)),
      connection("stopped", STOPPED),
    ];
    await store(
      table,
      ...sound,
      connection("hidden", NO_EXPIRY),
      connection("hidden-owned", { ...NO_EXPIRY, ...owner("t") }),
      connection("absurd", expiry(nowMs + FURTHEST_MS + 1)),
      connection("absurd-owned", ownedBy("t", Number.MAX_SAFE_INTEGER)),
      connection("hidden-stopped", { ...NO_EXPIRY, ...STOPPED }),
      connection("beyond-doubles", { lease_expires_at_ms: { N: "9".repeat(38) } }),
    );
    const done = await audit({ itemsPerSecond: 100_000 });
    assert.deepEqual(done, { scanned: 12, mended: 6, overtaken: 0, failed: 0, malformed: 0, complete: true });
    for (const item of sound) assert.deepEqual(await stored(table, item["connection_id"]!.S!), item);
    for (const id of ["hidden", "absurd", "hidden-stopped", "beyond-doubles"]) {
      assert.equal((await stored(table, id))?.["lease_expires_at_ms"]?.N, "0", id);
    }
    for (const id of ["hidden-owned", "absurd-owned"]) {
      const item = await stored(table, id);
      assert.equal(item?.["lease_expires_at_ms"]?.N, String(nowMs + LEASE_MS), `${id}: its holder may be alive`);
      assert.equal(item["lease_owner"]?.S, "t");
    }
  });

  it("makes a hidden connection visible to the sweep", async () => {
    const { clock, table, audit } = bed();
    await store(table, connection("hidden", NO_EXPIRY));
    const orphans = async () => {
      const found: string[] = [];
      for await (const { connectionId } of queryOrphans(table, { nowMs: clock.wallMs(), skewMs: 1_000 })) {
        found.push(connectionId);
      }
      return found;
    };
    assert.deepEqual(await orphans(), []);
    await audit();
    assert.deepEqual(await orphans(), ["hidden"]);
  });

  it("takes the longer of lease and park for the limit", async () => {
    const { clock, table, audit } = bed();
    await store(table, connection("held", ownedBy("t", clock.wallMs() + 7_200_000)));
    assert.equal((await audit({ leaseMs: 7_200_000 })).mended, 0);
    assert.equal((await audit({ leaseMs: 20_000 })).mended, 1);
  });

  it("does not mend what somebody changed between the look and the mending", async () => {
    const { table, dynamoDb, clock, begin } = bed();
    await store(table, connection("hidden", NO_EXPIRY));
    dynamoDb.faults = ({ operation }) =>
      operation === "UpdateItem" ? { kind: "delay", ms: 100, applyAt: "end" } : undefined;
    const done = begin();
    await clock.advance(50);
    const taken = connection("hidden", ownedBy("t", clock.wallMs() + LEASE_MS));
    await store(table, taken);
    await clock.advance(840_000);
    const result = await done;
    assert.deepEqual([result.mended, result.overtaken], [0, 1]);
    assert.deepEqual(await stored(table, "hidden"), taken);
  });

  it("goes on after a mending that nobody can vouch for", async () => {
    const { table, logger, audit } = bed({
      faults: ({ operation, input }) =>
        operation === "UpdateItem" && JSON.stringify(input).includes('"b"') ? { kind: "throttle" } : undefined,
    });
    await store(table, ...["a", "b", "c"].map((id) => connection(id, NO_EXPIRY)));
    const result = await audit();
    assert.deepEqual([result.mended, result.failed], [2, 1]);
    assert.ok(logger.lines.some(({ level, fields }) => level === "error" && fields["connectionId"] === "b"));
  });

  it("counts items that no worker could act on, names field and rule, and mends them all the same", async () => {
    const { table, logger, audit } = bed();
    await store(
      table,
      connection("no-state", { desired_state: undefined }),
      connection("no-url", { ws_url: undefined, ...NO_EXPIRY }),
      connection("http", { ws_url: { S: "http://feed.test" } }),
      connection("epoch", { lease_epoch: { N: "1.5" } }),
      connection("epoch-text", { lease_epoch: { S: "7" } }),
      connection("upstream", { upstream: { M: { typo: { S: "x" } } } }),
      connection("a#b"),
      connection("fine"),
    );
    const result = await audit();
    assert.deepEqual([result.scanned, result.malformed, result.mended], [8, 7, 1]);
    const problems = new Map(
      logger.lines
        .filter(({ message }) => message === "no worker can act on this item")
        .map(({ fields }) => [fields["connectionId"], (fields["problems"] as string[]).join("; ")]),
    );
    assert.match(problems.get("no-state") ?? "", /desired_state must be STARTED or STOPPED/);
    assert.match(problems.get("no-url") ?? "", /ws_url must be a string/);
    assert.match(problems.get("http") ?? "", /ws_url must begin with ws/);
    assert.match(problems.get("epoch") ?? "", /lease_epoch must be a non-negative integer/);
    assert.match(problems.get("epoch-text") ?? "", /lease_epoch must be a non-negative integer/);
    assert.match(problems.get("upstream") ?? "", /upstream/);
    assert.match(problems.get("a#b") ?? "", /must not contain '#'/);
    assert.equal(problems.size, 7);
  });

  it("bounds what it logs of them", async () => {
    const { table, logger, audit } = bed();
    await store(table, ...Array.from({ length: 60 }, (_, i) => connection(`c-${i}`, { ws_url: undefined })));
    assert.equal((await audit()).malformed, 60);
    const warnings = logger.lines.filter(({ level }) => level === "warn");
    assert.equal(warnings.length, 21);
    assert.equal(warnings.at(-1)?.fields["leftOut"], 40);
  });

  it("reads no faster than its pace", async () => {
    const { clock, table, dynamoDb, begin } = bed();
    await store(table, ...Array.from({ length: 50 }, (_, i) => connection(`c-${i}`)));
    const beganMs = clock.monotonicMs();
    const pagesAtMs: number[] = [];
    dynamoDb.faults = ({ operation, input }) => {
      assert.equal(operation, "Scan");
      assert.equal((input as { ConsistentRead?: boolean }).ConsistentRead, false);
      pagesAtMs.push(clock.monotonicMs() - beganMs);
      return undefined;
    };
    const done = begin({ pageSize: 10, itemsPerSecond: 20 });
    await clock.advance(10_000);
    assert.equal((await done).scanned, 50);
    assert.deepEqual(pagesAtMs.slice(0, 5), [0, 500, 1_000, 1_500, 2_000]);
  });

  it("stops before its time is over, and says that it did not see all", async () => {
    const { table, logger, audit } = bed({ timeoutMs: 20_000 });
    await store(table, ...Array.from({ length: 40 }, (_, i) => connection(`c-${i}`)));
    const result = await audit({ pageSize: 10, itemsPerSecond: 1 });
    assert.equal(result.complete, false);
    assert.equal(result.scanned, 20, "the page due at 20 s would leave less than 10 s");
    const last = logger.lines.at(-1);
    assert.equal(last?.level, "warn");
    assert.match(last.message, /stopped early/);
    assert.equal(last.fields["scanned"], 20);
  });

  it("fails when the table cannot be read", async () => {
    const { begin } = bed({ faults: () => ({ kind: "throttle" }) });
    await assert.rejects(begin(), { name: "ProvisionedThroughputExceededException" });
  });
});
