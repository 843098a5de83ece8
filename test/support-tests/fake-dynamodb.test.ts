import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  ConditionalCheckFailedException,
  DeleteItemCommand,
  DescribeTableCommand,
  DynamoDBServiceException,
  GetItemCommand,
  PutItemCommand,
  ResourceNotFoundException,
  UpdateItemCommand,
  type WriteRequest,
} from "@aws-sdk/client-dynamodb";
import { FakeDynamoDb, type StreamRecord } from "../support/fake-dynamodb/fake-dynamodb.ts";
import { VirtualClock } from "../support/virtual-clock.ts";
import { makeFixture, ROWS, serviceError } from "./fixture.ts";

const A = { id: { S: "a" } };
const SET_N = { UpdateExpression: "SET n = :n", ExpressionAttributeValues: { ":n": { N: "1" } } };
const putRow = (seq: number): WriteRequest => ({ PutRequest: { Item: { id: { S: "r" }, seq: { N: String(seq) } } } });
const deleteRow = (seq: number): WriteRequest => ({
  DeleteRequest: { Key: { id: { S: "r" }, seq: { N: String(seq) } } },
});

describe("single items", () => {
  it("are created by an update, unless a condition forbids it", async () => {
    const { update, fake } = makeFixture();
    await assert.rejects(
      update("a", { ...SET_N, ConditionExpression: "attribute_exists(id)" }),
      serviceError("ConditionalCheckFailedException"),
    );
    assert.deepEqual(fake.items("leases"), []);
    const { Attributes } = await update("a", { ...SET_N, ReturnValues: "ALL_NEW" });
    assert.deepEqual(Attributes, { ...A, n: { N: "1" } });
    await update("ghost", { UpdateExpression: "REMOVE n" });
    assert.equal(fake.items("leases").length, 2);
  });

  it("come back with a failed condition only when asked for and there", async () => {
    const { put, update } = makeFixture();
    await put({ ...A, n: { N: "7" } });
    const failing = { ...SET_N, ConditionExpression: "n = :n" };
    const failure = async (id: string, extra: object): Promise<ConditionalCheckFailedException> => {
      const error: unknown = await update(id, { ...failing, ...extra }).then(
        () => undefined,
        (e: unknown) => e,
      );
      assert.ok(error instanceof ConditionalCheckFailedException);
      assert.ok(error instanceof DynamoDBServiceException);
      assert.equal(error.$metadata.httpStatusCode, 400);
      return error;
    };
    const asking = { ReturnValuesOnConditionCheckFailure: "ALL_OLD" };
    assert.deepEqual((await failure("a", asking)).Item, { ...A, n: { N: "7" } });
    assert.equal((await failure("a", {})).Item, undefined);
    assert.equal((await failure("absent", asking)).Item, undefined);
  });

  it("return old or new values as asked", async () => {
    const { put, update, client } = makeFixture();
    await put({ ...A, n: { N: "7" } });
    assert.deepEqual((await update("a", { ...SET_N, ReturnValues: "ALL_OLD" })).Attributes, { ...A, n: { N: "7" } });
    assert.equal((await update("a", SET_N)).Attributes, undefined);
    const replaced = await client.send(new PutItemCommand({ TableName: "leases", Item: A, ReturnValues: "ALL_OLD" }));
    assert.deepEqual(replaced.Attributes, { ...A, n: { N: "1" } });
    const deletion = new DeleteItemCommand({ TableName: "leases", Key: A, ReturnValues: "ALL_OLD" });
    assert.deepEqual((await client.send(deletion)).Attributes, A);
    assert.equal((await client.send(deletion)).Attributes, undefined);
  });

  it("share nothing with their callers", async () => {
    const { put, fake, client } = makeFixture();
    const item = { ...A, b: { B: Uint8Array.of(1) }, l: { L: [{ N: "1" }] } };
    await put(item);
    item.b.B[0] = 9;
    item.l.L.push({ N: "2" });
    const read = async () => (await client.send(new GetItemCommand({ TableName: "leases", Key: A }))).Item;
    const first = await read();
    first!["l"]!.L!.push({ N: "3" });
    assert.deepEqual(await read(), { ...A, b: { B: Uint8Array.of(1) }, l: { L: [{ N: "1" }] } });
    assert.deepEqual(fake.items("leases"), [await read()]);
  });

  it("hold numbers beyond 2^53 exactly", async () => {
    const { update } = makeFixture();
    const big = { UpdateExpression: "SET n = if_not_exists(n, :big) + :one", ReturnValues: "ALL_NEW" } as const;
    const values = { ":big": { N: "900719925474099300000" }, ":one": { N: "1" } };
    assert.equal(
      (await update("a", { ...big, ExpressionAttributeValues: values })).Attributes!["n"]!.N,
      "900719925474099300001",
    );
    assert.equal(
      (await update("a", { ...big, ExpressionAttributeValues: values })).Attributes!["n"]!.N,
      "900719925474099300002",
    );
  });

  it("have keys of the right shape and type", async () => {
    const { put, client, update } = makeFixture();
    const get = (Key: Record<string, { S: string } | { N: string }>) =>
      client.send(new GetItemCommand({ TableName: "leases", Key: Key }));
    await assert.rejects(get({ id: { N: "1" } }), serviceError("ValidationException", /key element does not match/));
    await assert.rejects(get({ ...A, x: { S: "" } }), serviceError("ValidationException", /does not match the schema/));
    await assert.rejects(put({ n: { N: "1" } }), serviceError("ValidationException", /Missing the key id/));
    await assert.rejects(put({ id: { N: "1" } }), serviceError("ValidationException", /Type mismatch for key id/));
    await assert.rejects(put({ id: { S: "" } }), serviceError("ValidationException", /empty string value. Key: id/));
    await assert.rejects(put({ id: { S: "x".repeat(2049) } }), serviceError("ValidationException", /Size of key id/));
    const setId = { UpdateExpression: "SET id = :n", ExpressionAttributeValues: { ":n": { S: "b" } } };
    await assert.rejects(update("a", setId), serviceError("ValidationException", /Cannot update attribute id/));
  });

  it("hold at most 400 KB, and a refused update changes nothing", async () => {
    const { put, update, fake } = makeFixture();
    const bytes = 400 * 1024 - "id".length - "a".length - "v".length;
    await put({ ...A, v: { S: "x".repeat(bytes) } });
    const tooMuch = { S: "x".repeat(bytes + 1) };
    await assert.rejects(put({ ...A, v: tooMuch }), serviceError("ValidationException", /Item size has exceeded/));
    await assert.rejects(
      update("a", { UpdateExpression: "SET v = :v", ExpressionAttributeValues: { ":v": tooMuch } }),
      serviceError("ValidationException", /Item size to update has exceeded/),
    );
    assert.equal(fake.items("leases")[0]!["v"]!.S!.length, bytes);
  });

  it("live in tables that exist", async () => {
    const { client } = makeFixture();
    await assert.rejects(client.send(new GetItemCommand({ TableName: "nowhere", Key: A })), ResourceNotFoundException);
  });
});

describe("what is not supported", () => {
  it("fails as no service exception would", async () => {
    const { client } = makeFixture();
    const unsupported = { name: "UnsupportedByFake" };
    await assert.rejects(client.send(new DescribeTableCommand({ TableName: "leases" })), unsupported);
    const legacy = new PutItemCommand({ TableName: "leases", Item: A, Expected: { n: { Exists: false } } });
    await assert.rejects(client.send(legacy), unsupported);
    const partial = new UpdateItemCommand({ TableName: "leases", Key: A, ...SET_N, ReturnValues: "UPDATED_NEW" });
    await assert.rejects(client.send(partial), unsupported);
  });

  it("is refused in table definitions", () => {
    const clock = new VirtualClock();
    const make = (change: object) => () => new FakeDynamoDb({ clock, tables: [{ ...ROWS, ...change }] });
    assert.throws(make({ AttributeDefinitions: [] }), /rows: AttributeDefinitions lacks key attribute id/);
    assert.throws(make({ KeySchema: [] }), /rows: KeySchema needs a HASH attribute/);
    assert.throws(make({ LocalSecondaryIndexes: [] }), { name: "UnsupportedByFake" });
  });
});

describe("batches", () => {
  const write = (requests: WriteRequest[]) =>
    new BatchWriteItemCommand({ RequestItems: { rows: requests }, ReturnConsumedCapacity: "INDEXES" });

  it("write and delete, and say what each table cost", async () => {
    const { client, fake } = makeFixture();
    await client.send(write([putRow(1), putRow(2)]));
    const output = await client.send(write([deleteRow(1), putRow(3)]));
    assert.deepEqual(output.UnprocessedItems, {});
    assert.deepEqual(output.ConsumedCapacity, [{ TableName: "rows", CapacityUnits: 2, Table: { CapacityUnits: 2 } }]);
    assert.deepEqual(
      fake.items("rows").map((item) => item["seq"]?.N),
      ["2", "3"],
    );
  });

  const bad: readonly (readonly [string, WriteRequest[], RegExp])[] = [
    ["a key twice", [putRow(1), deleteRow(1)], /contains duplicates/],
    [
      "the same number written differently",
      [putRow(1), { DeleteRequest: { Key: { id: { S: "r" }, seq: { N: "1.0" } } } }],
      /duplicates/,
    ],
    ["26 entries", Array.from({ length: 26 }, (_, i) => putRow(i)), /less than or equal to 25/],
    ["no entry", [], /greater than or equal to 1/],
    [
      "an item that is too large",
      [putRow(1), { PutRequest: { Item: { id: { S: "r" }, seq: { N: "2" }, v: { S: "x".repeat(410_000) } } } }],
      /Item size/,
    ],
    [
      "a number of 39 digits",
      [putRow(1), { PutRequest: { Item: { id: { S: "r" }, seq: { N: "9".repeat(39) } } } }],
      /38 significant digits/,
    ],
  ];
  for (const [name, requests, message] of bad) {
    it(`are refused whole for ${name}`, async () => {
      const { client, fake } = makeFixture();
      await assert.rejects(client.send(write(requests)), serviceError("ValidationException", message));
      assert.deepEqual(fake.items("rows"), []);
    });
  }

  it("read what there is", async () => {
    const { client } = makeFixture();
    await client.send(write([putRow(1), putRow(2)]));
    const Keys = [1, 2, 3].map((seq) => ({ id: { S: "r" }, seq: { N: String(seq) } }));
    const read = await client.send(
      new BatchGetItemCommand({ RequestItems: { rows: { Keys, ProjectionExpression: "seq" } } }),
    );
    assert.deepEqual(read.Responses, { rows: [{ seq: { N: "1" } }, { seq: { N: "2" } }] });
    assert.deepEqual(read.UnprocessedKeys, {});
    const twice = new BatchGetItemCommand({ RequestItems: { rows: { Keys: [Keys[0]!, Keys[0]!] } } });
    await assert.rejects(client.send(twice), serviceError("ValidationException", /duplicates/));
  });
});

describe("the stream", () => {
  it("tells every change once, in order, with both images, and nothing of a write without change", async () => {
    const { put, update, remove, fake, client } = makeFixture();
    const records: StreamRecord[] = [];
    fake.onStreamRecord((record) => records.push(record));
    await put(A);
    await update("a", SET_N);
    await update("a", SET_N);
    await update("a", { ...SET_N, ConditionExpression: "attribute_not_exists(id)" }).catch(() => undefined);
    await remove("a");
    await remove("a");
    await client.send(new BatchWriteItemCommand({ RequestItems: { rows: [putRow(1)] } }));
    assert.deepEqual(
      records.map(({ eventName, dynamodb: { Keys, OldImage, NewImage } }) => ({ eventName, Keys, OldImage, NewImage })),
      [
        { eventName: "INSERT", Keys: A, OldImage: undefined, NewImage: A },
        { eventName: "MODIFY", Keys: A, OldImage: A, NewImage: { ...A, n: { N: "1" } } },
        { eventName: "REMOVE", Keys: A, OldImage: { ...A, n: { N: "1" } }, NewImage: undefined },
      ],
    );
    const numbers = records.map(({ dynamodb }) => BigInt(dynamodb.SequenceNumber));
    assert.ok(numbers[0]! < numbers[1]! && numbers[1]! < numbers[2]!);
    assert.equal(new Set(records.map(({ eventID }) => eventID)).size, 3);
    assert.equal(records[0]!.dynamodb.ApproximateCreationDateTime, Date.UTC(2026, 0, 1) / 1000);
  });

  it("keeps the order for every listener when a listener writes", async () => {
    const { put, update, fake } = makeFixture();
    const seen: string[] = [];
    fake.onStreamRecord(({ eventName }) => {
      if (eventName === "INSERT") void update("a", SET_N);
    });
    const stop = fake.onStreamRecord(({ eventName }) => seen.push(eventName));
    await put(A);
    assert.deepEqual(seen, ["INSERT", "MODIFY"]);
    stop();
    await put(A);
    assert.equal(seen.length, 2);
  });
});
