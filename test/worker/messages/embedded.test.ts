import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { readMessages, type StoredMessage } from "../../../local/audit/read-messages.ts";
import { SystemClock } from "../../../shared/clock.ts";
import type { MessageRow } from "../../../shared/messages/row.ts";
import { MAX_ITEM_BYTES } from "../../../worker/messages/limits.ts";
import type { MessageWriter } from "../../../worker/messages/writer.ts";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../../support/embedded-dynamodb.ts";
import { Counts, makeWriter, pushAll, row, Told, TOO_LONG } from "./support.ts";

describe("the message writer on the embedded DynamoDB", () => {
  let server: EmbeddedDynamoDb;
  let table: string;
  let writer: MessageWriter;
  let counts: Counts;

  before(async () => {
    server = await startEmbeddedDynamoDb();
    table = await server.createTable("MessagesTable");
    counts = new Counts();
    const clock = new SystemClock();
    writer = makeWriter({ client: server.client, clock, counts, tableName: table, random: Math.random });
  });

  after(async () => {
    await writer.stop(AbortSignal.timeout(10_000));
    await server.stop();
  });

  async function read(connectionId: string): Promise<readonly StoredMessage[]> {
    const { messages, damaged } = await readMessages({ dynamodb: server.client, table }, connectionId);
    assert.deepEqual(damaged, []);
    return messages;
  }

  async function roundTrip(connectionId: string, rows: readonly MessageRow[]): Promise<readonly StoredMessage[]> {
    const told = new Told();
    const lane = writer.lane(told);
    for (const one of rows) lane.push(one);
    assert.equal(await lane.flush(), true, JSON.stringify(told.refused.map(({ problem }) => problem)));
    assert.deepEqual(lane.checkpoint, { lastSeq: rows.at(-1)!.seq });
    lane.close();
    const messages = await read(connectionId);
    assert.deepEqual(
      messages.map(({ seq }) => seq),
      rows.map(({ seq }) => seq),
    );
    messages.forEach(({ payload, opcode }, i) => {
      const sent = rows[i]!.payload;
      assert.equal(opcode, typeof sent === "string" ? "text" : "binary");
      // Not deepEqual, which would print megabytes.
      assert.ok(
        typeof sent === "string" ? payload === sent : Buffer.compare(sent, payload as Uint8Array) === 0,
        `${i}`,
      );
    });
    return messages;
  }

  it("stores the messages of 200 lanes, each in order and complete", async () => {
    const lanes = Array.from({ length: 200 }, () => writer.lane(new Told()));
    for (let seq = 1; seq <= 30; seq++) {
      lanes.forEach((lane, i) => lane.push(row(`many-${i}`, seq)));
      if (seq % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(await writer.flushAll(AbortSignal.timeout(60_000)), true);
    assert.ok(lanes.every((lane) => lane.checkpoint?.lastSeq === 30n && lane.pendingItems === 0));
    for (const i of [0, 99, 199]) {
      const messages = await read(`many-${i}`);
      assert.deepEqual(
        messages.map(({ payload }) => payload),
        Array.from({ length: 30 }, (_, n) => `message ${n + 1} of many-${i}`),
      );
    }
    assert.equal(counts.of("MessagesStored"), 6000);
    assert.equal(counts.of("MessageWriteRetries"), 0);
  });

  it("keeps positions of 38 digits, empty messages and any text exactly", async () => {
    await roundTrip("exact", [
      row("exact", 0, { payload: "" }),
      row("exact", 1, { payload: new Uint8Array() }),
      row("exact", 2n ** 53n + 1n, { payload: '"\\\u0000\u2028😀\n' }),
      row("exact", 10n ** 38n - 1n, { payload: new Uint8Array(256).map((_, i) => i) }),
    ]);
  });

  it("stores messages around the size limit, whole or in parts", async () => {
    const frame = Buffer.byteLength("around") + 200;
    const sizes = [-frame - 1000, -frame, -120, -60, -1, 0, 1, 60, 1000, 2048, 4096].map((n) => MAX_ITEM_BYTES + n);
    const texts = await roundTrip(
      "around",
      sizes.map((size, i) => row("around", i, { payload: "x".repeat(size) })),
    );
    assert.equal(texts[0]?.parts, 0);
    assert.equal(texts.at(-1)?.parts, 2);
    const wide = sizes.map((size, i) => row("wide", i, { payload: "é".repeat(size / 2) }));
    assert.equal((await roundTrip("wide", wide)).at(-1)?.parts, 2);
    const bytes = sizes.map((size, i) => row("bytes", i, { payload: randomBytes(size) }));
    assert.equal((await roundTrip("bytes", bytes)).at(-1)?.parts, 2);
  });

  it("stores messages of megabytes: text, text of many bytes a character, control characters, binary", async () => {
    const messages = await roundTrip("huge", [
      row("huge", 1, { payload: "0123456789".repeat(100_000) }),
      row("huge", 2, { payload: "small" }),
      row("huge", 3, { payload: "漢字😀x".repeat(400_000) }),
      row("huge", 4, { payload: "\u0001".repeat(1_000_000) }),
      row("huge", 5, { payload: randomBytes(5 * 1024 * 1024) }),
    ]);
    assert.deepEqual(
      messages.map(({ parts }) => parts),
      [3, 0, 13, 3, 15],
    );
  });

  it("stores control characters just below the limit, whose request is six times their size", async () => {
    await roundTrip(
      "escapes",
      Array.from({ length: 8 }, (_, i) => row("escapes", i, { payload: "\u0002".repeat(400_000) })),
    );
  });

  it("parks only the lane of a refused message", async () => {
    const [bad, good] = [new Told(), new Told()];
    const [badLane, goodLane] = [writer.lane(bad), writer.lane(good)];
    pushAll(badLane, "bad", 1, 5);
    badLane.push(row("bad", TOO_LONG));
    pushAll(goodLane, "good", 1, 15);
    badLane.push(row("bad", 6, { payload: "", cursor: "c".repeat(420_000) }));
    pushAll(badLane, "bad", 7, 9);
    assert.equal(await goodLane.flush(), true);
    assert.equal(await badLane.flush(), false);
    assert.deepEqual(
      bad.refused.map(({ seq }) => seq).sort((a, b) => (a < b ? -1 : 1)),
      [6n, TOO_LONG],
    );
    assert.deepEqual(good.refused, []);
    assert.deepEqual(badLane.checkpoint, { lastSeq: 5n });
    assert.deepEqual(
      (await read("bad")).map(({ seq }) => seq),
      [1n, 2n, 3n, 4n, 5n, 7n, 8n, 9n],
    );
    assert.equal((await read("good")).length, 15);
  });

  it("writes repetitions of a key one after the other", async () => {
    const lane = writer.lane(new Told());
    for (let i = 1; i <= 20; i++) {
      lane.push(row("again", 5, { payload: `version ${i}` }));
      lane.push(row("again", 5 + i));
    }
    assert.equal(await lane.flush(), true);
    const messages = await read("again");
    assert.equal(messages.length, 21);
    assert.equal(messages[0]?.payload, "version 20");
    assert.deepEqual(lane.checkpoint, { lastSeq: 25n });
  });
});
