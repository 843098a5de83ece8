import fc from "fast-check";
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { LeaseTable } from "../../shared/lease/index.ts";
import { connection, ownedBy, store, stored } from "../functions/support/connections.ts";
import { crashedTask, TASK_ID } from "../functions/support/ecs-events.ts";
import { startEmbeddedSqs, type EmbeddedQueue, type EmbeddedSqs } from "../functions/support/embedded-sqs.ts";
import { httpEndpoint, type HttpEndpoint } from "../functions/support/http-endpoint.ts";
import { coldStart, lambdaContext, SCHEDULED_EVENT } from "../functions/support/invocation.ts";
import { streamRecord } from "../functions/support/stream.ts";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../support/embedded-dynamodb.ts";

const SCHEDULED = ["audit", "fleet-metrics", "reconcile"] as const;
const ALL = [...SCHEDULED, "desired-state", "task-stopped"] as const;
/** Too little for a round: an event that is taken for a sound one is told by another error than the one about its shape. */
const NO_TIME_MS = 500;

type Handler = Awaited<ReturnType<typeof coldStart>>;

let dynamoDb: EmbeddedDynamoDb;
let sqs: EmbeddedSqs;
let queue: EmbeddedQueue;
let endpoint: HttpEndpoint;
let table: LeaseTable;
const handlers = new Map<string, Handler>();
const handlerOf = (name: string): Handler => handlers.get(name) ?? assert.fail(`${name} is not loaded`);

before(async () => {
  dynamoDb = await startEmbeddedDynamoDb();
  sqs = await startEmbeddedSqs();
  queue = await sqs.createQueue();
  endpoint = await httpEndpoint(200, { runningTasks: 1 });
  table = { client: dynamoDb.client, tableName: await dynamoDb.createTable("ConnectionsTable") };
  for (const name of ALL) {
    handlers.set(
      name,
      await coldStart(name, {
        WS_FLEET_CONNECTIONS_TABLE: table.tableName,
        WS_FLEET_HINT_QUEUE_URL: queue.url,
        WS_FLEET_CLUSTER: "ws-fleet-test",
        WS_FLEET_METRICS_URL: endpoint.url,
        WS_FLEET_RUNNING_TASKS_URL: endpoint.url,
      }),
    );
  }
});
after(async () => {
  await endpoint.close();
  await sqs.stop();
  await dynamoDb.stop();
});

/** A sound event with one of its members, at any depth, replaced by anything or taken away. */
function spoilt(event: object): fc.Arbitrary<unknown> {
  const anyValue = fc.oneof(fc.jsonValue(), fc.constant(undefined), fc.constantFrom("STOPPED", "arn:aws:ecs:::task/"));
  return fc.tuple(fc.constantFrom(...pathsIn(event)), anyValue).map(([path, value]) => replaced(event, path, value));
}

function pathsIn(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, member]) => pathsIn(member, [...path, key]))];
}

function replaced(from: unknown, [key, ...rest]: readonly string[], value: unknown): unknown {
  if (key === undefined) return value;
  if (Array.isArray(from))
    return from.map((one, n) => (String(n) === key ? replaced(one, rest, value) : one) as unknown);
  const members = from as Record<string, unknown>;
  return { ...members, [key]: replaced(members[key], rest, value) };
}

const RECORDS = {
  Records: [streamRecord("1", connection("c-1")), streamRecord("2", connection("c-2", { lease_owner: { S: "task" } }))],
};
const anyEvent: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue(),
  fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
  spoilt(SCHEDULED_EVENT),
  spoilt(RECORDS),
  spoilt(crashedTask()),
);

const isObject = (event: unknown): event is Record<string, unknown> => typeof event === "object" && event !== null;

/** What each function is for, told apart from the code under test. */
function isMeantFor(name: (typeof ALL)[number], event: unknown): boolean {
  if (!isObject(event)) return false;
  if (name === "desired-state") return Array.isArray(event["Records"]);
  const type = name === "task-stopped" ? "ECS Task State Change" : "Scheduled Event";
  return event["detail-type"] === type;
}

const outcomeOf = (name: string, event: unknown): Promise<Error | undefined> =>
  handlerOf(name)(event, lambdaContext(NO_TIME_MS)).then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error : assert.fail(`threw ${String(error)}`)),
  );

describe("an event of any shape", () => {
  for (const name of ALL) {
    it(`is refused by ${name} with the field and the rule, unless it is of its kind`, () =>
      fc.assert(
        fc.asyncProperty(
          anyEvent.filter((event) => !isMeantFor(name, event)),
          async (event) => {
            const error = await outcomeOf(name, event);
            assert.equal(error?.name, "EventShapeError", String(error));
            assert.match(error.message, /^not an? [A-Z\w ]+ event: (event|source|detail|detail-type|Records): \S/);
          },
        ),
        { numRuns: 150 },
      ));
  }

  for (const name of SCHEDULED) {
    it(`that is a scheduled one starts ${name}, whatever else it carries`, () =>
      fc.assert(
        fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (more) => {
          const error = await outcomeOf(name, { ...more, source: "aws.events", "detail-type": "Scheduled Event" });
          assert.notEqual(error?.name, "EventShapeError");
        }),
        { numRuns: 25 },
      ));
  }

  it("frees nobody's lease unless it proves a task dead", async () => {
    const held = connection("held", ownedBy(TASK_ID, Date.now() + 600_000));
    await store(table, held);
    const unproven = spoilt(crashedTask({ desiredStatus: "RUNNING" }));
    await fc.assert(
      fc.asyncProperty(
        unproven.filter((event) => !isProof(event)),
        async (event) => {
          const error = await outcomeOf("task-stopped", event);
          assert.ok(error === undefined || error.name === "EventShapeError", String(error));
          assert.deepEqual(await stored(table, "held"), held);
        },
      ),
      { numRuns: 150 },
    );
    await outcomeOf("task-stopped", crashedTask());
    assert.equal((await stored(table, "held"))?.["lease_owner"], undefined);
  });

  it("brings one hint for each connection that its records show free to take, and reports no record as failed", () =>
    fc.assert(
      fc.asyncProperty(fc.array(anyRecord, { maxLength: 6 }), async (records) => {
        const answer = await handlerOf("desired-state")(
          { Records: records.map(({ record }) => record) },
          lambdaContext(10_000),
        );
        assert.deepEqual(answer, { batchItemFailures: [] });
        const wanted = new Set(records.flatMap(({ hinted }) => (hinted === undefined ? [] : [hinted])));
        const hints = await queue.drain();
        assert.deepEqual(hints.map(({ connectionId }) => connectionId).sort(), [...wanted].sort());
      }),
      { numRuns: 80 },
    ));
});

function isProof(event: unknown): boolean {
  return isObject(event) && isObject(event["detail"]) && event["detail"]["desiredStatus"] === "STOPPED";
}

/** Records of which it is known what they stand for. */
const anyRecord: fc.Arbitrary<{ record: unknown; hinted?: string }> = fc.oneof(
  fc
    .constantFrom("c-1", "ü/:😀", "\uffff", "x".repeat(1024), "ü".repeat(512), "😀".repeat(256))
    .map((id) => ({ record: streamRecord("7", connection(id)), hinted: id })),
  fc
    .constantFrom<Parameters<typeof connection>[1]>(
      { lease_owner: { S: "task" } },
      { lease_expires_at_ms: { N: "1" } },
      { desired_state: { S: "STOPPED" } },
      { desired_state: undefined },
      { lease_expires_at_ms: { S: "0" } },
      { connection_id: { S: "a#b" } },
      { connection_id: { S: "x".repeat(1025) } },
      { connection_id: { N: "1" } },
    )
    .map((changes) => ({ record: streamRecord("8", connection("never", changes)) })),
  fc.jsonValue().map((record) => ({ record })),
  fc
    .constantFrom(
      streamRecord("9", undefined),
      streamRecord("9", connection("never"), { eventName: "REMOVE" }),
      streamRecord("9", connection("never"), { eventName: "modify" }),
      streamRecord("", connection("never")),
    )
    .map((record) => ({ record })),
);
