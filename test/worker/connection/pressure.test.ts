import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "../../../shared/logger.ts";
import { MessageWriter } from "../../../worker/messages/writer.ts";
import { FakeDynamoDb } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { Line } from "../support/line.ts";

describe("pressure of the writer", () => {
  it("pauses the socket and lets it go on", async () => {
    const line = await Line.streaming();
    line.lane.events.onPressure(true);
    assert.equal(line.socket.paused, true);
    line.lane.events.onPressure(false);
    assert.equal(line.socket.paused, false);
  });

  it("holds for a socket that opens while it lasts", async () => {
    const line = await Line.streaming();
    line.lane.events.onPressure(true);
    line.socket.end({ code: 1006 });
    const next = await line.dialled(2);
    assert.equal(next.paused, false);
    next.open();
    assert.equal(next.paused, true);
    line.lane.events.onPressure(false);
    assert.equal(next.paused, false);
  });

  it("that begins while nothing is dialled holds for the next socket", async () => {
    const line = await Line.streaming();
    line.socket.end({ code: 1006 });
    line.lane.events.onPressure(true);
    (await line.dialled(2)).open();
    assert.equal(line.socket.paused, true);
  });

  it("that ends while nothing is open leaves the next socket alone", async () => {
    const line = await Line.streaming();
    line.lane.events.onPressure(true);
    line.socket.end({ code: 1006 });
    line.lane.events.onPressure(false);
    (await line.dialled(2)).open();
    assert.equal(line.socket.paused, false);
  });

  it("does not stop a socket that is being closed: the reply could never be read", async () => {
    const line = await Line.streaming();
    void line.connection.drain();
    line.lane.events.onPressure(true);
    assert.equal(line.socket.paused, false);
    line.socket.end();
    await line.untilEnded();
  });

  it("comes and goes with a real writer whose table is throttled, and nothing is lost", async () => {
    let throttled = true;
    let db: FakeDynamoDb | undefined;
    const line = await Line.streaming({
      makeLane: (events, options, heart) => {
        db = new FakeDynamoDb({
          clock: heart.clock,
          tables: [
            {
              TableName: "messages",
              KeySchema: [
                { AttributeName: "connection_id", KeyType: "HASH" },
                { AttributeName: "seq", KeyType: "RANGE" },
              ],
              AttributeDefinitions: [
                { AttributeName: "connection_id", AttributeType: "S" },
                { AttributeName: "seq", AttributeType: "N" },
              ],
            },
          ],
          faults: () => (throttled ? { kind: "throttle" } : undefined),
        });
        const writer = new MessageWriter({
          client: db.client(),
          tableName: "messages",
          clock: heart.clock,
          random: () => 0.5,
          logger: silentLogger,
          metrics: heart.metrics,
          settings: { maxBytes: 1_048_576, maxItems: 100, lingerMs: 10, concurrency: 2, ttlSeconds: 3600 },
        });
        return writer.lane(events, options);
      },
    });
    let sent = 0;
    while (!line.socket.paused && sent < 10_000) line.socket.send(`message ${++sent}`);
    assert.ok(sent <= 101, `paused after ${sent}`);
    await line.clock.advance(30_000);
    assert.equal(line.socket.paused, true);
    assert.equal(line.holding.mayAct(), true, "message writes never hold up renewals");
    throttled = false;
    await line.clock.advanceUntil(() => !line.socket.paused, 30_000);
    const drained = line.connection.drain();
    line.socket.end();
    await line.untilEnded();
    await drained;
    const base = line.holding.epoch * 1_000_000_000_000n;
    assert.deepEqual(
      db?.items("messages").map((item) => item["seq"]?.N),
      Array.from({ length: sent }, (_, n) => String(base + BigInt(n + 1))),
    );
    assert.equal(line.item["last_seq"]?.N, String(base + BigInt(sent)));
  });
});
