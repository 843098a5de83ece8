import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { CreateTableCommand, PutItemCommand } from "@aws-sdk/client-dynamodb";
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { readMessages } from "../../local/audit/read-messages.ts";
import type { MessagesSource } from "../../local/audit/read-messages.ts";
import { startDynamo } from "./helpers/dynoxide.ts";
import type { LocalDynamo } from "./helpers/dynoxide.ts";

let local: LocalDynamo;
let source: MessagesSource;

before(async () => {
  local = await startDynamo();
  source = { dynamodb: local.dynamodb, table: "messages" };
  await local.dynamodb.send(
    new CreateTableCommand({
      TableName: source.table,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [
        { AttributeName: "connection_id", AttributeType: "S" },
        { AttributeName: "seq", AttributeType: "N" },
      ],
      KeySchema: [
        { AttributeName: "connection_id", KeyType: "HASH" },
        { AttributeName: "seq", KeyType: "RANGE" },
      ],
    }),
  );
});
after(async () => await local.stop());

async function put(id: string, seq: string, item: Record<string, AttributeValue>): Promise<void> {
  const Item = { connection_id: { S: id }, seq: { N: seq }, ...item };
  await source.dynamodb.send(new PutItemCommand({ TableName: source.table, Item }));
}

const meta = {
  received_at_ms: { N: "1700000000001" },
  lease_epoch: { N: "1700000000" },
  expires_at: { N: "1800000000" },
};
const text = (payload: string): Record<string, AttributeValue> => ({ ...meta, opcode: { S: "text" }, payload: { S: payload } }); // prettier-ignore

/** Stores the message in parts of at most `partBytes`, the head last. */
async function putParts(id: string, seq: string, opcode: string, whole: Buffer, partBytes: number): Promise<void> {
  const count = Math.ceil(whole.length / partBytes);
  for (let part = 1; part <= count; part += 1) {
    const chunk = whole.subarray((part - 1) * partBytes, part * partBytes);
    await put(`${id}#${seq}`, String(part), { payload: { B: chunk } });
  }
  const sha256 = createHash("sha256").update(whole).digest("hex");
  await put(id, seq, { ...meta, opcode: { S: opcode }, parts: { N: String(count) }, sha256: { S: sha256 } });
}

describe("readMessages", () => {
  it("gives text and binary back, ordered, with positions beyond 2^53", async () => {
    await put("plain", "9007199254740995", text("third"));
    await put("plain", "9007199254740993", { ...text("second"), cursor: { S: "c-1" } });
    await put("plain", "7", { ...meta, opcode: { S: "binary" }, payload: { B: Uint8Array.of(0, 255) } });
    await put("plain-not", "1", text("of another connection"));
    const common = { receivedAtMs: 1_700_000_000_001, leaseEpoch: 1_700_000_000, parts: 0 };
    const { messages, damaged } = await readMessages(source, "plain");
    assert.deepEqual(damaged, []);
    assert.deepEqual(
      messages.map((message) => ({ ...message, payload: Buffer.from(message.payload as string).toString("hex") })),
      [
        { seq: 7n, opcode: "binary", payload: "00ff", cursor: undefined, ...common },
        { seq: 9007199254740993n, opcode: "text", payload: hex("second"), cursor: "c-1", ...common },
        { seq: 9007199254740995n, opcode: "text", payload: hex("third"), cursor: undefined, ...common },
      ],
    );
    assert.deepEqual(await readMessages(source, "nobody"), { messages: [], damaged: [] });
  });

  it("reads beyond one page", async () => {
    // A page holds 1 MB.
    for (let seq = 1; seq <= 9; seq += 1) await put("pages", String(seq), text(`${seq}`.repeat(300_000)));
    const { messages } = await readMessages(source, "pages");
    assert.deepEqual(messages.map(({ payload }) => payload), range9.map((digit) => digit.repeat(300_000))); // prettier-ignore
  });

  it("puts a message in parts together again, across characters and pages", async () => {
    const long = "“é😀” ".repeat(120_000);
    await putParts("parts", "9007199254740993", "text", Buffer.from(long), 350_001);
    await putParts("parts", "9007199254740994", "binary", Buffer.alloc(500, 7), 200);
    const { messages, damaged } = await readMessages(source, "parts");
    assert.deepEqual(damaged, []);
    assert.equal(messages[0]!.payload, long);
    assert.equal(messages[0]!.parts, Math.ceil(Buffer.byteLength(long) / 350_001));
    assert.deepEqual(messages[1]!.payload, Buffer.alloc(500, 7));
  });

  it("reports what is damaged and goes on", async () => {
    const whole = Buffer.from("abcdefghij");
    await putParts("bad", "1", "text", whole, 4);
    await put("bad#1", "2", { payload: { B: Buffer.from("EFGH") } });
    await putParts("bad", "2", "text", whole, 4);
    await put("bad", "2", { ...meta, opcode: { S: "text" }, parts: { N: "4" }, sha256: { S: "" } });
    await put("bad", "3", { ...meta, opcode: { S: "text" } });
    await put("bad", "4", { ...text("x"), opcode: { S: "ping" } });
    await put("bad", "5", { ...meta, opcode: { S: "text" }, payload: { B: Uint8Array.of(0xff) } });
    await put("bad", "6", { ...text("x"), lease_epoch: { S: "1" } });
    await put("bad", "7", text("good"));
    await put("bad#8", "2", { payload: { B: whole } });
    await put("bad", "8", { ...meta, opcode: { S: "text" }, parts: { N: "1" }, sha256: { S: "" } });
    const { messages, damaged } = await readMessages(source, "bad");
    assert.deepEqual(messages.map(({ payload }) => payload), ["good"]); // prettier-ignore
    const reasons: [string, RegExp][] = [
      ["1", /^sha256 is [0-9a-f]{64}, the head item says otherwise$/],
      ["2", /^4 parts are announced, 3 are stored$/],
      ["3", /^payload must be S or B$/],
      ["4", /^opcode must be 'text' or 'binary'$/],
      ["5", /^payload of a text message must be UTF-8$/],
      ["6", /^lease_epoch must be a whole N$/],
      ["8", /^part 1 of 1 is missing$/],
    ];
    assert.deepEqual(damaged.map(({ seq }) => seq), reasons.map(([seq]) => seq)); // prettier-ignore
    damaged.forEach(({ reason }, at) => assert.match(reason, reasons[at]![1]));
  });

  it("fails when the table cannot be read", async () => {
    await assert.rejects(readMessages({ ...source, table: "absent" }, "plain"), { name: "ResourceNotFoundException" });
  });
});

const range9 = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
const hex = (value: string): string => Buffer.from(value).toString("hex");
