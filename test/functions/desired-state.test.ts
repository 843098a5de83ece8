import assert from "node:assert/strict";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import {
  acquire,
  deleteConnection,
  park,
  release,
  renew,
  start,
  stop,
  type LeaseTable,
} from "../../shared/lease/index.ts";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../support/embedded-dynamodb.ts";
import { connection } from "./support/connections.ts";
import { startEmbeddedSqs, type EmbeddedQueue, type EmbeddedSqs } from "./support/embedded-sqs.ts";
import { coldStart, lambdaContext } from "./support/invocation.ts";
import { streamRecord, streamRecords } from "./support/stream.ts";

const TIMEOUT_MS = 10_000;

let dynamoDb: EmbeddedDynamoDb;
let sqs: EmbeddedSqs;
let table: LeaseTable;
let queue: EmbeddedQueue;
before(async () => {
  dynamoDb = await startEmbeddedDynamoDb();
  sqs = await startEmbeddedSqs();
  table = {
    client: dynamoDb.client,
    tableName: await dynamoDb.createTable("ConnectionsTable", { stream: true }),
  };
  queue = await sqs.createQueue();
});
after(async () => {
  await dynamoDb.stop();
  await sqs.stop();
});

const load = () => coldStart("desired-state", { WS_FLEET_HINT_QUEUE_URL: queue.url });

describe("desired-state", () => {
  it("hints what a connection's whole life puts on the stream: its start and its release, nothing else", async () => {
    const wsUrl = "wss://feed.test/stream";
    const held = async (id: string) => {
      await start(table, { connectionId: id, wsUrl });
      const outcome = await acquire(table, {
        connectionId: id,
        owner: "task-1",
        nowMs: Date.now(),
        leaseMs: 20_000,
        skewMs: 1_000,
      });
      if (outcome.kind !== "held") assert.fail(`not held: ${outcome.reason}`);
      return { connectionId: id, owner: "task-1", epoch: outcome.value.epoch };
    };
    const released = await held("released");
    await renew(table, { ...released, expiresAtMs: Date.now() + 25_000 });
    const parked = await held("parked");
    await park(table, { ...parked, untilMs: Date.now() + 60_000, error: "refused" });
    const stopped = await held("stopped");
    await stop(table, "stopped");
    await release(table, stopped);
    await deleteConnection(table, { connectionId: "stopped", nowMs: Date.now(), skewMs: 1000 });

    const handler = await load();
    const before = await streamRecords(table, dynamoDb.endpoint);
    assert.ok(before.length >= 11, `every write is on the stream, got ${before.length}`);
    assert.deepEqual(await handler({ Records: before }, lambdaContext(TIMEOUT_MS)), { batchItemFailures: [] });
    assert.deepEqual((await queue.drain()).map(({ connectionId }) => connectionId).sort(), [
      "parked",
      "released",
      "stopped",
    ]);

    await release(table, released);
    const since = (await streamRecords(table, dynamoDb.endpoint)).slice(before.length);
    assert.equal(since.length, 1);
    assert.deepEqual(await handler({ Records: since }, lambdaContext(TIMEOUT_MS)), { batchItemFailures: [] });
    assert.deepEqual(
      (await queue.drain()).map(({ connectionId, reason }) => [connectionId, reason]),
      [["released", "started"]],
    );
  });

  it("answers with the sequence numbers of the batch when the queue cannot be reached", async () => {
    const handler = await coldStart("desired-state", {
      WS_FLEET_HINT_QUEUE_URL: `${queue.url}-gone`,
      WS_FLEET_ATTEMPTS: "1",
    });
    const Records = [
      streamRecord("4421584500000000017450439091", connection("c-1")),
      streamRecord("4421584500000000017450439092", undefined),
      streamRecord("4421584500000000017450439093", connection("c-2")),
    ];
    assert.deepEqual(await handler({ Records }, lambdaContext(TIMEOUT_MS)), {
      batchItemFailures: [
        { itemIdentifier: "4421584500000000017450439091" },
        { itemIdentifier: "4421584500000000017450439093" },
      ],
    });
  });

  it("answers before it would be killed when the queue hangs", async () => {
    const hanging = createServer();
    await new Promise<void>((resolve) => hanging.listen(0, "127.0.0.1", resolve));
    const { port } = hanging.address() as AddressInfo;
    const serving = process.env["AWS_ENDPOINT_URL_SQS"];
    process.env["AWS_ENDPOINT_URL_SQS"] = `http://127.0.0.1:${port}`;
    const sockets = new Set<Socket>();
    hanging.on("connection", (socket) => sockets.add(socket));
    try {
      const handler = await load();
      const Records = [streamRecord("1", connection("c-1"))];
      assert.deepEqual(await handler({ Records }, lambdaContext(2_500)), {
        batchItemFailures: [{ itemIdentifier: "1" }],
      });
      assert.ok(sockets.size > 0, "the queue was asked");
    } finally {
      process.env["AWS_ENDPOINT_URL_SQS"] = serving;
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => hanging.close(resolve));
    }
  });

  it("refuses an event that is no stream batch, naming field and rule", async () => {
    const handler = await load();
    for (const event of [{}, { Records: "many" }, null, "text"]) {
      await assert.rejects(handler(event, lambdaContext(TIMEOUT_MS)), (error: Error) => {
        assert.equal(error.name, "EventShapeError");
        assert.match(error.message, /^not a DynamoDB stream event: (Records|event): /);
        return true;
      });
    }
  });

  it("does not start without its settings", async () => {
    await assert.rejects(coldStart("desired-state", {}), /WS_FLEET_HINT_QUEUE_URL: must be set/);
  });
});
