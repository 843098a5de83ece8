import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MalformedItemError, type RawItem } from "../../../shared/connection/item.ts";
import { acquire, deleteConnection, releaseOf, renew, start, stop } from "../../../shared/lease/index.ts";
import { LeapingClock } from "../../support/leaping-clock.ts";
import { answering } from "./answering.ts";
import { EPOCH, freeItem, heldItem, LEASE_MS, ME, NOW_MS, SKEW_MS, without } from "./contract/items.ts";

/**
 * Answers that no table of the contract can be brought to give: an expiry of another type than N can only be in a table
 * that was made without the index, and races cannot be lost again and again at will.
 */
const refusal = (item?: RawItem) =>
  new ConditionalCheckFailedException({ message: "refused", $metadata: {}, ...(item && { Item: item }) });

describe("acquire", () => {
  const request = { connectionId: "c", owner: ME, nowMs: NOW_MS, leaseMs: LEASE_MS, skewMs: SKEW_MS };

  it("of an item whose expiry is not a number is lost as malformed, neither parked nor free", async () => {
    const item = freeItem("c", { lease_expires_at_ms: { S: "tomorrow" } });
    const { table } = answering(() => refusal(item));
    assert.deepEqual(await acquire(table, request), { kind: "lost", reason: "malformed", item });
  });

  it("that was applied to an item without a countable epoch is lost as malformed: nothing could be renewed", async () => {
    const item = without(heldItem("c"), "lease_epoch");
    const { table } = answering(() => ({ Attributes: item }));
    assert.deepEqual(await acquire(table, request), { kind: "lost", reason: "malformed", item });
  });

  it("says when the lease in its way ends", async () => {
    const { table } = answering(() => refusal(heldItem("c", { owner: "other", expiresAtMs: NOW_MS + 5 })));
    const outcome = await acquire(table, request);
    assert.match(outcome.kind === "unknown" ? String(outcome.error) : "", new RegExp(`ends at ${NOW_MS + 5}$`));
  });
});

describe("renew", () => {
  for (const [what, expiry] of [
    ["is not a number", { S: "tomorrow" }],
    ["is just the one that was sent", { N: String(NOW_MS) }],
  ] as const) {
    it(`that is refused under our own epoch is lost where the stored expiry ${what}: nothing else explains it`, async () => {
      const item = heldItem("c", {}, { lease_expires_at_ms: expiry });
      const { table } = answering(() => refusal(item));
      const outcome = await renew(table, { connectionId: "c", owner: ME, epoch: EPOCH, expiresAtMs: NOW_MS });
      assert.deepEqual(outcome, { kind: "lost", reason: "owned", item });
    });
  }
});

describe("start", () => {
  const request = { connectionId: "c", wsUrl: "wss://feed.test/" };

  it("is one write where nobody holds the connection", async () => {
    const { table, inputs } = answering(() => ({}));
    assert.equal((await start(table, request)).kind, "held");
    assert.equal(inputs.length, 1);
    assert.match(String(inputs[0]?.["ConditionExpression"]), /attribute_not_exists\(lease_owner\)/);
  });

  for (const [what, item] of [
    ["taken and freed", freeItem("c", { upstream: { M: {} } })],
    ["deleted and created", undefined],
  ] as const) {
    it(`gives up, without a verdict, on an item that is ${what} between all its writes`, async () => {
      const refused = refusal(item);
      const { table, inputs } = answering(() => refused);
      assert.deepEqual(await start(table, request), { kind: "unknown", reason: "other", error: refused });
      assert.equal(inputs.length, 8);
      const owned = inputs.map((input) => String(input["ConditionExpression"]).startsWith("attribute_exists"));
      assert.deepEqual(owned, [false, true, false, true, false, true, false, true]);
    });
  }
});

describe("releaseOf", () => {
  const request = { deadTask: "dead", perSecond: 1, attempts: 1 };
  const shown = (...ids: string[]) => ids.map((id) => ({ connection_id: { S: id } }));

  it("reads on behind the last row of every page, also behind an empty one, until there is no more", async () => {
    const key = (id: string) => ({ connection_id: { S: id }, lease_owner: { S: "dead" } });
    const pages = [
      { Items: shown("a", "b"), LastEvaluatedKey: key("b") },
      { LastEvaluatedKey: key("c") },
      { Items: [{ lease_owner: { S: "dead" } }, ...shown("d")] },
    ];
    const { table, inputs } = answering((input) => (isQuery(input) ? (pages.shift() ?? assert.fail("read on")) : {}));
    const counts = await releaseOf({ table, clock: new LeapingClock(NOW_MS) }, { ...request, perSecond: 1000 });
    assert.deepEqual(counts, { released: 3, skipped: 0, failed: 0 });
    const queries = inputs.filter(isQuery);
    assert.deepEqual(
      queries.map((input) => input["ExclusiveStartKey"]),
      [undefined, key("b"), key("c")],
    );
    assert.equal(
      queries.every((input) => !("ExclusiveStartKey" in input) || input["ExclusiveStartKey"]),
      true,
    );
    assert.deepEqual(
      inputs.filter((input) => !isQuery(input)).map((input) => input["Key"]),
      shown("a", "b", "d"),
    );
  });

  it("starts no further release once it was told to end", async () => {
    const abort = new AbortController();
    let releases = 0;
    const { table } = answering((input) => {
      if (isQuery(input)) return { Items: shown("a", "b", "c", "d", "e") };
      if (++releases === 3) abort.abort();
      return {};
    });
    const clock = new LeapingClock(NOW_MS);
    const counts = await releaseOf({ table, clock }, request, { signal: abort.signal });
    assert.deepEqual(counts, { released: 3, skipped: 0, failed: 0 });
    assert.equal(releases, 3);
  });
});

describe("stop and deleteConnection", () => {
  it("throw on an id that can name no connection, say why, and send nothing", async () => {
    const { table, inputs } = answering(() => ({}));
    for (const run of [
      () => stop(table, "a#1"),
      () => deleteConnection(table, { connectionId: "a#1", nowMs: NOW_MS, skewMs: SKEW_MS }),
    ]) {
      await assert.rejects(run, (error) => error instanceof MalformedItemError && /#/.test(error.problems.join()));
    }
    assert.equal(inputs.length, 0);
  });
});

const isQuery = (input: Record<string, unknown>): boolean => "KeyConditionExpression" in input;
