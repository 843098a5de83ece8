import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  ConditionalCheckFailedException,
  DynamoDBServiceException,
  InternalServerError,
  ProvisionedThroughputExceededException,
  PutItemCommand,
} from "@aws-sdk/client-dynamodb";
import type { Call, Fault } from "../support/fake-dynamodb/fake-dynamodb.ts";
import { makeFixture, serviceError, type Fixture, type Update } from "./fixture.ts";

const ADD_ONE: Update = { UpdateExpression: "ADD n :one", ExpressionAttributeValues: { ":one": { N: "1" } } };
const ONCE: Update = { ...ADD_ONE, ConditionExpression: "attribute_not_exists(n)" };

/** One fault for the first request; the next ones pass. */
function withFault(fault: Fault): Fixture {
  return makeFixture({ faults: ({ n }) => (n === 1 ? fault : undefined) });
}

function storedN({ fake }: Fixture): string | undefined {
  return fake.items("leases")[0]?.["n"]?.N;
}

describe("a fault", () => {
  it("that refuses the request applies nothing", async () => {
    const refusals: readonly (readonly [Fault, string, number])[] = [
      [{ kind: "throttle" }, "ProvisionedThroughputExceededException", 400],
      [{ kind: "server-error" }, "InternalServerError", 500],
      [{ kind: "credentials" }, "UnrecognizedClientException", 400],
      [{ kind: "credentials", name: "ExpiredTokenException" }, "ExpiredTokenException", 400],
    ];
    for (const [fault, name, httpStatusCode] of refusals) {
      const fixture = withFault(fault);
      const error: unknown = await fixture.update("a", ADD_ONE).then(
        () => undefined,
        (e: unknown) => e,
      );
      assert.ok(error instanceof DynamoDBServiceException);
      assert.deepEqual([error.name, error.$metadata.httpStatusCode], [name, httpStatusCode]);
      assert.equal(storedN(fixture), undefined);
      await fixture.update("a", ADD_ONE);
      assert.equal(storedN(fixture), "1");
    }
    await assert.rejects(withFault({ kind: "throttle" }).update("a", ADD_ONE), ProvisionedThroughputExceededException);
    await assert.rejects(withFault({ kind: "server-error" }).update("a", ADD_ONE), InternalServerError);
  });

  it("after the write leaves it applied", async () => {
    const fixture = withFault({ kind: "apply-then-error" });
    await assert.rejects(fixture.update("a", ADD_ONE), InternalServerError);
    assert.equal(storedN(fixture), "1");
  });

  it("hides a failed condition, but not a mistake in the request", async () => {
    const fixture = makeFixture({ faults: ({ n }) => (n > 1 ? { kind: "apply-then-error" } : undefined) });
    await fixture.update("a", ADD_ONE);
    await assert.rejects(fixture.update("a", ONCE), InternalServerError);
    const mistake = fixture.update("a", { UpdateExpression: "SET n" });
    await assert.rejects(mistake, serviceError("ValidationException"));
  });

  it("can lose the answer until the caller aborts, with and without the write", async () => {
    for (const [kind, stored] of [
      ["apply-then-timeout", "1"],
      ["no-answer", undefined],
    ] as const) {
      const fixture = withFault({ kind });
      const abort = new AbortController();
      let settled = false;
      const sent = fixture.client
        .send(new PutItemCommand({ TableName: "leases", Item: { id: { S: "a" }, n: { N: "1" } } }), {
          abortSignal: abort.signal,
        })
        .finally(() => {
          settled = true;
        });
      sent.catch(() => undefined);
      await fixture.clock.advance(3_600_000);
      assert.equal(settled, false);
      const reason = new Error("deadline");
      abort.abort(reason);
      await assert.rejects(sent, { name: "AbortError", cause: reason });
      assert.equal(storedN(fixture), stored);
    }
  });

  it("can resend the applied request: the caller sees its own write in the way", async () => {
    const fixture = withFault({ kind: "resent" });
    const sent = fixture.update("a", { ...ONCE, ReturnValuesOnConditionCheckFailure: "ALL_OLD" });
    await assert.rejects(sent, (error: ConditionalCheckFailedException) => error.Item?.["n"]?.N === "1");
    assert.equal(storedN(fixture), "1");
  });

  it("can apply a write long after it was reported as timed out, against the item of that time", async () => {
    const fixture = withFault({ kind: "delayed-apply", applyAfterMs: 5000 });
    await assert.rejects(fixture.update("a", { ...ADD_ONE, ConditionExpression: "n = :one" }), {
      name: "TimeoutError",
    });
    await fixture.clock.advance(4999);
    assert.equal(storedN(fixture), undefined);
    await fixture.update("a", ADD_ONE);
    await fixture.clock.advance(1);
    assert.equal(storedN(fixture), "2");
  });

  it("sends what was sent, not what the caller made of it later", async () => {
    const fixture = withFault({ kind: "delayed-apply", applyAfterMs: 10 });
    const Item = { id: { S: "a" }, n: { N: "1" } };
    await assert.rejects(fixture.put(Item), { name: "TimeoutError" });
    Item.n.N = "2";
    await fixture.clock.advance(10);
    assert.equal(storedN(fixture), "1");
  });

  it("can delay a write whose condition has failed by then", async () => {
    const fixture = withFault({ kind: "delayed-apply", applyAfterMs: 10 });
    await assert.rejects(fixture.update("a", ONCE), { name: "TimeoutError" });
    await fixture.update("a", ONCE);
    await fixture.clock.advance(10);
    assert.equal(storedN(fixture), "1");
  });

  it("refuses delays that are none", async () => {
    const fixture = withFault({ kind: "delay", ms: Number.NaN });
    await assert.rejects(fixture.update("a", ADD_ONE), /fault: ms must be a number of milliseconds/);
  });
});

describe("a delay", () => {
  for (const applyAt of ["start", "end"] as const) {
    it(`takes effect at the ${applyAt}`, async () => {
      const fixture = withFault({ kind: "delay", ms: 100, applyAt });
      const sent = fixture.update("a", { ...ADD_ONE, ReturnValues: "ALL_NEW" });
      await fixture.clock.advance(99);
      assert.equal(storedN(fixture), applyAt === "start" ? "1" : undefined);
      await fixture.clock.advance(1);
      assert.equal((await sent).Attributes?.["n"]?.N, "1");
      assert.equal(storedN(fixture), "1");
    });
  }

  it("delays refusals too", async () => {
    const fixture = makeFixture({ faults: ({ n }) => (n === 2 ? { kind: "delay", ms: 100 } : undefined) });
    await fixture.update("a", ONCE);
    const sent = assert.rejects(fixture.update("a", ONCE), ConditionalCheckFailedException);
    await fixture.clock.advance(100);
    await sent;
  });

  it("ends for the caller with an abort, but the request is on its way", async () => {
    const fixture = withFault({ kind: "delay", ms: 100 });
    const abort = new AbortController();
    const sent = fixture.client.send(
      new PutItemCommand({ TableName: "leases", Item: { id: { S: "a" }, n: { N: "1" } } }),
      { abortSignal: abort.signal },
    );
    abort.abort();
    await assert.rejects(sent, { name: "AbortError" });
    assert.equal(storedN(fixture), undefined);
    await fixture.clock.advance(100);
    assert.equal(storedN(fixture), "1");
  });
});

describe("a request", () => {
  it("that is aborted before it is sent does nothing and is not counted", async () => {
    const calls: Call[] = [];
    const fixture = makeFixture({
      faults: (call) => {
        calls.push(call);
        return undefined;
      },
    });
    const put = new PutItemCommand({ TableName: "leases", Item: { id: { S: "a" } } });
    await assert.rejects(fixture.client.send(put, { abortSignal: AbortSignal.abort() }), { name: "AbortError" });
    await fixture.fake.client("other").send(put);
    await fixture.client.send(put);
    assert.deepEqual(
      calls.map(({ operation, table, n, client }) => ({ operation, table, n, client })),
      [
        { operation: "PutItem", table: "leases", n: 1, client: "other" },
        { operation: "PutItem", table: "leases", n: 2, client: "client" },
      ],
    );
    assert.deepEqual(calls[0]?.input, put.input);
  });

  it("can be failed for one client alone, from any moment on", async () => {
    const { fake } = makeFixture();
    const put = new PutItemCommand({ TableName: "leases", Item: { id: { S: "a" } } });
    fake.faults = ({ client }) => (client === "cut-off" ? { kind: "throttle" } : undefined);
    await assert.rejects(fake.client("cut-off").send(put), ProvisionedThroughputExceededException);
    await fake.client("well").send(put);
    fake.faults = undefined;
    await fake.client("cut-off").send(put);
  });
});

describe("unprocessed entries", () => {
  const keys = [0, 1, 2].map((seq) => ({ id: { S: "r" }, seq: { N: String(seq) } }));
  const write = new BatchWriteItemCommand({ RequestItems: { rows: keys.map((Item) => ({ PutRequest: { Item } })) } });

  it("of a write come back and are not written", async () => {
    const { client, fake } = withFault({ kind: "unprocessed", select: (i) => i === 1 });
    const { UnprocessedItems } = await client.send(write);
    assert.deepEqual(UnprocessedItems, { rows: [{ PutRequest: { Item: keys[1] } }] });
    assert.deepEqual(fake.items("rows"), [keys[0], keys[2]]);
    assert.deepEqual(
      (await client.send(new BatchWriteItemCommand({ RequestItems: UnprocessedItems }))).UnprocessedItems,
      {},
    );
    assert.deepEqual(fake.items("rows"), keys);
  });

  it("of a read come back in a form that can be sent again", async () => {
    const { client, fake } = makeFixture();
    await client.send(write);
    fake.faults = ({ operation, n }) =>
      operation === "BatchGetItem" && n === 2 ? { kind: "unprocessed", select: (i) => i !== 0 } : undefined;
    const read = new BatchGetItemCommand({ RequestItems: { rows: { Keys: keys, ConsistentRead: true } } });
    const { Responses, UnprocessedKeys } = await client.send(read);
    assert.deepEqual(Responses, { rows: [keys[0]] });
    assert.deepEqual(UnprocessedKeys, { rows: { Keys: [keys[1], keys[2]], ConsistentRead: true } });
    const again = await client.send(new BatchGetItemCommand({ RequestItems: UnprocessedKeys }));
    assert.deepEqual(again.Responses, { rows: [keys[1], keys[2]] });
  });

  it("that are all of them are a throttle", async () => {
    const { client } = withFault({ kind: "unprocessed", select: () => true });
    await assert.rejects(client.send(write), ProvisionedThroughputExceededException);
  });

  it("exist in batches only", async () => {
    const { put } = withFault({ kind: "unprocessed", select: () => true });
    await assert.rejects(put({ id: { S: "a" } }), /unprocessed applies to batches only/);
  });
});
