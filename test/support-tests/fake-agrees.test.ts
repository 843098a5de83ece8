import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { CreateTableCommand, GetItemCommand, type AttributeValue, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import fc from "fast-check";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../support/embedded-dynamodb.ts";
import { FakeDynamoDb } from "../support/fake-dynamodb/fake-dynamodb.ts";
import { VirtualClock } from "../support/virtual-clock.ts";
import { CONDITIONS, NUMBERS, OTHERS, UPDATES } from "./agreement/cases.ts";
import { ITEM, put, query, remove, update, type Send, type Tables } from "./agreement/requests.ts";
import { LEASES, ROWS } from "./fixture.ts";

/**
 * The same requests go to the in-memory DynamoDB and to the embedded server, and both must answer alike: outputs,
 * consumed capacity, exceptions with their `Item`. Left out is what the embedded server is known to take although AWS
 * refuses it (redundant parentheses, an operand compared with itself, a start key outside the query) or does otherwise
 * (a position behind the end of a list is padded, several positions are removed one after the other).
 */

describe("the in-memory DynamoDB answers as the embedded server", () => {
  let server: EmbeddedDynamoDb;
  let tableCount = 0;
  before(async () => {
    server = await startEmbeddedDynamoDb();
  });
  after(() => server.stop());

  /** Sends every request to both, one after the other, in fresh tables. */
  async function assertAgree(sends: readonly Send[]): Promise<void> {
    const tables: Tables = { leases: `leases-${++tableCount}`, rows: `rows-${tableCount}` };
    const definitions = [
      { ...LEASES, TableName: tables.leases },
      { ...ROWS, TableName: tables.rows },
    ];
    for (const { StreamSpecification: _, ...definition } of definitions) {
      await server.client.send(new CreateTableCommand({ ...definition, BillingMode: "PAY_PER_REQUEST" }));
    }
    const fake = new FakeDynamoDb({ clock: new VirtualClock(), tables: definitions }).client();
    for (const [step, send] of sends.entries()) {
      const expected = await outcomeOf(send, server.client, tables);
      assert.deepEqual(await outcomeOf(send, fake, tables), expected, `request ${step + 1} of ${sends.length}`);
    }
  }

  for (const ConditionExpression of CONDITIONS) {
    it(`condition "${ConditionExpression}"`, () =>
      assertAgree([put(ITEM), update("a", { UpdateExpression: "SET z = :ten", ConditionExpression })]));
  }
  for (const UpdateExpression of UPDATES) {
    it(`update "${UpdateExpression}"`, () => assertAgree([put(ITEM), update("a", { UpdateExpression })]));
  }
  it("numbers", () =>
    assertAgree(
      NUMBERS.flatMap((N) => [
        put({ id: { S: "a" }, v: { N } }),
        (client, { leases }) => client.send(new GetItemCommand({ TableName: leases, Key: { id: { S: "a" } } })),
      ]),
    ));
  for (const [name, sends] of Object.entries(OTHERS)) it(name, () => assertAgree(sends));

  it("any sequence of conditional updates of a lease", async () => {
    const id = fc.constantFrom("a", "b");
    const condition = fc.constantFrom(
      "attribute_exists(id)",
      "attribute_not_exists(holder) OR holder = :w",
      "expires <= :ten",
      "epoch < :ten",
      "NOT holder = :he",
      "desired = :ON AND (attribute_not_exists(expires) OR expires < :two)",
    );
    const change = fc.constantFrom(
      "SET desired = :ON, expires = if_not_exists(expires, :one)",
      "SET holder = :w, expires = :ten ADD epoch :one",
      "SET expires = :two REMOVE holder",
      "SET epoch = if_not_exists(epoch, :ten) + :one",
      "REMOVE desired, holder",
      "SET holder = :he, log = list_append(if_not_exists(log, :empty), :list)",
      "SET expires = expires + :ten",
    );
    const step = fc.oneof(
      {
        weight: 8,
        arbitrary: fc
          .tuple(id, condition, change)
          .map(([i, c, u]) => update(i, { ConditionExpression: c, UpdateExpression: u })),
      },
      { weight: 4, arbitrary: fc.tuple(id, change).map(([i, u]) => update(i, { UpdateExpression: u })) },
      { weight: 1, arbitrary: id.map((i) => remove(i)) },
      { weight: 2, arbitrary: fc.constant(query({})) },
      { weight: 1, arbitrary: fc.constant(query({ IndexName: "by_owner", KeyConditionExpression: "holder = :w" })) },
    );
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), assertAgree), {
      numRuns: 30,
    });
  });
});

/** An answer without what cannot be equal: request metadata, and the order of attributes and of scanned items. */
async function outcomeOf(send: Send, client: DynamoDBClient, tables: Tables): Promise<unknown> {
  try {
    const { $metadata, ...output } = (await send(client, tables)) as { $metadata: { httpStatusCode?: number } };
    return { status: $metadata.httpStatusCode, ...output };
  } catch (error) {
    assert.ok(error instanceof Error);
    const { name, $metadata, Item } = error as Error & {
      $metadata?: { httpStatusCode?: number };
      Item?: Record<string, AttributeValue>;
    };
    return { status: $metadata?.httpStatusCode, error: name, ...(Item === undefined ? {} : { Item }) };
  }
}
