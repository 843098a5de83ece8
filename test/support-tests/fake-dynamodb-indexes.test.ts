import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  ScanCommand,
  type QueryCommandInput,
  type ScanCommandInput,
} from "@aws-sdk/client-dynamodb";
import { makeFixture, serviceError, type Attributes, type Fixture } from "./fixture.ts";

const lease = (id: string, expires: number, holder?: string): Attributes => ({
  id: { S: id },
  desired: { S: "ON" },
  expires: { N: String(expires) },
  ...(holder === undefined ? {} : { holder: { S: holder } }),
});
const set = (assignments: string, values: Attributes) => ({
  UpdateExpression: `SET ${assignments}`,
  ExpressionAttributeValues: values,
  ReturnConsumedCapacity: "INDEXES" as const,
});

async function putAll({ put }: Fixture, ...items: Attributes[]): Promise<void> {
  for (const item of items) await put(item);
}

describe("an index", () => {
  it("is sparse: an item without one of its key attributes is not in it", async () => {
    const fixture = makeFixture();
    await putAll(fixture, lease("a", 2), lease("b", 1, "w"), { id: { S: "c" }, desired: { S: "ON" } });
    assert.deepEqual(await fixture.idsIn("by_state", "ON"), ["b", "a"]);
    assert.deepEqual(await fixture.idsIn("by_owner", "w"), ["b"]);
    await fixture.update("b", { UpdateExpression: "REMOVE expires, holder" });
    assert.deepEqual(await fixture.idsIn("by_state", "ON"), ["a"]);
    assert.deepEqual(await fixture.idsIn("by_owner", "w"), []);
  });

  it("refuses key attributes of the wrong type or empty, also in an update", async () => {
    const { put, update } = makeFixture();
    const mismatch = serviceError(
      "ValidationException",
      /Type mismatch for Index Key expires Expected: N Actual: S IndexName: by_state/,
    );
    await assert.rejects(put({ ...lease("a", 1), expires: { S: "1" } }), mismatch);
    await assert.rejects(update("a", set("expires = :e", { ":e": { S: "1" } })), mismatch);
    await assert.rejects(put(lease("a", 1, "")), serviceError("ValidationException", /IndexKey: holder/));
  });

  it("shows what it projects and nothing else", async () => {
    const fixture = makeFixture();
    await putAll(fixture, { ...lease("a", 1, "w"), extra: { N: "1" } });
    const query = (changes: Partial<QueryCommandInput>) =>
      fixture.client.send(
        new QueryCommand({
          TableName: "leases",
          IndexName: "by_state",
          KeyConditionExpression: "desired = :s",
          ExpressionAttributeValues: { ":s": { S: "ON" } },
          ...changes,
        }),
      );
    assert.deepEqual((await query({})).Items, [lease("a", 1, "w")]);
    assert.deepEqual((await query({ ProjectionExpression: "holder" })).Items, [{ holder: { S: "w" } }]);
    const counted = await query({ Select: "COUNT" });
    assert.deepEqual([counted.Count, counted.ScannedCount, counted.Items], [1, 1, undefined]);
    const filtered = await query({ FilterExpression: "attribute_not_exists(holder)" });
    assert.deepEqual([filtered.Count, filtered.ScannedCount, filtered.Items], [0, 1, []]);
    const refused: readonly (readonly [Partial<QueryCommandInput>, RegExp])[] = [
      [{ ConsistentRead: true }, /Consistent reads are not supported/],
      [{ Select: "ALL_ATTRIBUTES" }, /Select type ALL_ATTRIBUTES is not supported/],
      [{ ProjectionExpression: "extra" }, /does not project \[extra\]/],
      [{ FilterExpression: "expires = :s" }, /Primary key attribute: expires/],
      [{ Limit: 0 }, /greater than or equal to 1/],
      [{ IndexName: "by_nothing" }, /does not have the specified index: by_nothing/],
      [{ ExclusiveStartKey: { id: { S: "a" } } }, /starting key is invalid/],
      [{ ExclusiveStartKey: { ...lease("a", 1), desired: { S: "OFF" } } }, /outside query boundaries/],
      [{ KeyConditionExpression: "expires = :s" }, /missed key schema element: desired/],
      [
        { KeyConditionExpression: "desired = :s OR desired = :s" },
        /Invalid operator used in KeyConditionExpression: OR/,
      ],
      [{ KeyConditionExpression: "desired < :s" }, /key condition not supported/],
      [{ KeyConditionExpression: "desired = :s AND expires = :s" }, /does not match schema type/],
      [{ KeyConditionExpression: "desired = :s AND desired = :s" }, /one condition per key/],
      [{ KeyConditionExpression: "desired = :s AND holder = :s" }, /missed key schema element: expires/],
    ];
    for (const [changes, message] of refused) {
      await assert.rejects(query(changes), serviceError("ValidationException", message));
    }
  });

  it("is read in pages that lose and repeat nothing, in both directions, also when keys repeat or rows go", async () => {
    const fixture = makeFixture();
    await putAll(fixture, ...["a", "b", "c", "d", "e"].map((id, i) => lease(id, i < 3 ? 7 : i)));
    for (const ScanIndexForward of [true, false]) {
      const found: (string | undefined)[] = [];
      let ExclusiveStartKey: Attributes | undefined;
      do {
        const page = await fixture.client.send(
          new QueryCommand({
            TableName: "leases",
            IndexName: "by_state",
            KeyConditionExpression: "desired = :s AND expires BETWEEN :from AND :to",
            ExpressionAttributeValues: { ":s": { S: "ON" }, ":from": { N: "4" }, ":to": { N: "7" } },
            Limit: 2,
            ScanIndexForward,
            ExclusiveStartKey,
          }),
        );
        found.push(...page.Items!.map((item) => item["id"]!.S));
        ExclusiveStartKey = page.LastEvaluatedKey;
        if (!ScanIndexForward && found.length === 2) await fixture.remove(found[1]!);
      } while (ExclusiveStartKey !== undefined);
      assert.deepEqual(found, ScanIndexForward ? ["e", "a", "b", "c"] : ["c", "b", "a", "e"]);
    }
  });
});

describe("a scan", () => {
  it("sees every item once, page by page, by count and by bytes", async () => {
    const fixture = makeFixture({ pageBytes: 60 });
    const ids = Array.from({ length: 20 }, (_, i) => `item-${i}`);
    await putAll(fixture, ...ids.map((id, i) => lease(id, i)));
    for (const limits of [{ Limit: 3 }, {}] satisfies Partial<ScanCommandInput>[]) {
      const found: string[] = [];
      let pages = 0;
      let ExclusiveStartKey: Attributes | undefined;
      do {
        const page = await fixture.client.send(
          new ScanCommand({
            TableName: "leases",
            FilterExpression: "expires <> :x",
            ExpressionAttributeValues: { ":x": { N: "5" } },
            ExclusiveStartKey,
            ...limits,
          }),
        );
        pages++;
        found.push(...page.Items!.map((item) => item["id"]!.S!));
        ExclusiveStartKey = page.LastEvaluatedKey;
      } while (ExclusiveStartKey !== undefined);
      assert.deepEqual(found.toSorted(), ids.filter((id) => id !== "item-5").toSorted());
      assert.ok(pages >= 7, `${pages} pages`);
    }
  });
});

describe("consumed capacity", () => {
  const LARGE = { S: "x".repeat(3000) };
  const cases: readonly (readonly [string, Attributes, string, Attributes, Record<string, number>])[] = [
    ["a renewal moves its row in by_state", lease("a", 1, "w"), "expires = :v", { ":v": { N: "2" } }, { by_state: 2 }],
    [
      "a new owner: projected in one, entry in the other",
      lease("a", 1),
      "holder = :v",
      { ":v": { S: "w" } },
      { by_state: 1, by_owner: 1 },
    ],
    ["an owner that changes", lease("a", 1, "w"), "holder = :v", { ":v": { S: "x" } }, { by_state: 1, by_owner: 2 }],
    ["no indexed attribute", lease("a", 1, "w"), "extra = :v", { ":v": { N: "1" } }, {}],
    ["no change", lease("a", 1, "w"), "expires = :v", { ":v": { N: "1" } }, {}],
  ];
  for (const [name, item, assignments, values, indexes] of cases) {
    it(`of indexes: ${name}`, async () => {
      const { put, update } = makeFixture();
      await put(item);
      const { ConsumedCapacity: capacity } = await update("a", set(assignments, values));
      assert.ok(capacity !== undefined);
      const units = Object.entries(capacity.GlobalSecondaryIndexes ?? {}).map(([i, c]) => [i, c.CapacityUnits]);
      assert.deepEqual(Object.fromEntries(units), indexes);
      assert.equal(capacity.Table?.CapacityUnits, 1);
      assert.equal(
        capacity.CapacityUnits,
        Object.values(indexes).reduce((a, b) => a + b, 1),
      );
    });
  }

  it("grows with the larger of the old and the new item", async () => {
    const { client, update } = makeFixture();
    const put = new PutItemCommand({
      TableName: "leases",
      Item: { id: { S: "a" }, v: LARGE },
      ReturnConsumedCapacity: "TOTAL",
    });
    assert.deepEqual((await client.send(put)).ConsumedCapacity, { TableName: "leases", CapacityUnits: 3 });
    const { ConsumedCapacity } = await update("a", { UpdateExpression: "REMOVE v", ReturnConsumedCapacity: "TOTAL" });
    assert.equal(ConsumedCapacity?.CapacityUnits, 3);
    assert.equal((await update("a", { UpdateExpression: "REMOVE v" })).ConsumedCapacity, undefined);
  });

  it("of reads halves without consistency and is counted at the index", async () => {
    const fixture = makeFixture();
    await putAll(fixture, lease("a", 1));
    const get = (ConsistentRead: boolean) =>
      new GetItemCommand({
        TableName: "leases",
        Key: { id: { S: "a" } },
        ConsistentRead,
        ReturnConsumedCapacity: "TOTAL",
      });
    assert.equal((await fixture.client.send(get(true))).ConsumedCapacity?.CapacityUnits, 1);
    assert.equal((await fixture.client.send(get(false))).ConsumedCapacity?.CapacityUnits, 0.5);
    const query = await fixture.client.send(
      new QueryCommand({
        TableName: "leases",
        IndexName: "by_state",
        KeyConditionExpression: "desired = :s",
        ExpressionAttributeValues: { ":s": { S: "ON" } },
        ReturnConsumedCapacity: "INDEXES",
      }),
    );
    assert.deepEqual(query.ConsumedCapacity, {
      TableName: "leases",
      CapacityUnits: 0.5,
      Table: { CapacityUnits: 0 },
      GlobalSecondaryIndexes: { by_state: { CapacityUnits: 0.5 } },
    });
  });
});

describe("index lag", () => {
  it("shows the old state until it has passed, while the base item is already new", async () => {
    const fixture = makeFixture({ indexLagMs: 500 });
    await putAll(fixture, lease("a", 1));
    assert.deepEqual(await fixture.idsIn("by_state", "ON"), []);
    assert.equal(fixture.fake.items("leases").length, 1);
    await fixture.clock.advance(499);
    assert.deepEqual(await fixture.idsIn("by_state", "ON"), []);
    await fixture.clock.advance(1);
    assert.deepEqual(await fixture.idsIn("by_state", "ON"), ["a"]);
    await fixture.remove("a");
    assert.deepEqual(await fixture.idsIn("by_state", "ON"), ["a"]);
    await fixture.clock.advance(500);
    assert.deepEqual(await fixture.idsIn("by_state", "ON"), []);
  });

  it("does not follow steps of the wall clock", async () => {
    const fixture = makeFixture({ indexLagMs: 500 });
    await putAll(fixture, lease("a", 1));
    fixture.clock.stepWall(60_000);
    assert.deepEqual(await fixture.idsIn("by_state", "ON"), []);
  });

  it("keeps the changes of one item in order, and lets items overtake each other", async () => {
    const lags = [900, 100, 100];
    const fixture = makeFixture({ indexLagMs: () => lags.shift() ?? 0 });
    await putAll(fixture, lease("slow", 1));
    await fixture.update("slow", set("expires = :e", { ":e": { N: "9" } }));
    await putAll(fixture, lease("fast", 5));
    await fixture.clock.advance(100);
    assert.deepEqual(await fixture.idsIn("by_state", "ON"), ["fast"]);
    await fixture.clock.advance(800);
    assert.deepEqual(await fixture.idsIn("by_state", "ON"), ["fast", "slow"]);
  });

  it("can change in the middle of a test", async () => {
    const fixture = makeFixture({ indexLagMs: 500 });
    fixture.fake.indexLagMs = 0;
    await putAll(fixture, lease("a", 1));
    assert.deepEqual(await fixture.idsIn("by_state", "ON"), ["a"]);
    fixture.fake.indexLagMs = () => Number.NaN;
    await assert.rejects(fixture.put(lease("b", 1)), /indexLagMs must be a number of milliseconds/);
  });
});
