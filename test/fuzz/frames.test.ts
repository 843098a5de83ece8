import fc from "fast-check";
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { unpositionedPartition } from "../../shared/messages/row.ts";
import { Dialled } from "../worker/support/dialled.ts";
import { POSITIONED } from "../worker/support/line.ts";
import { frame, OPCODE, RawUpstream } from "../worker/support/raw-upstream.ts";
import { VirtualWorker } from "../worker/support/virtual-worker.ts";
import { anyDocument, written } from "./support/documents.ts";
import { MESSAGES_TABLE } from "./support/stores.ts";

type Payload = string | Uint8Array;

const DEEP = `{"a":${"[".repeat(20_000)}${"]".repeat(20_000)},"seq":"x"}`;
const HUGE_NAMES = JSON.stringify({ ["k".repeat(200_000)]: 1, __proto__x: 2, constructor: { prototype: 3 } });

/** What an upstream may send and no position stands in. */
const strange: fc.Arbitrary<Payload> = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 50 }),
  fc.uint8Array({ maxLength: 200 }),
  anyDocument
    .map(written)
    .filter((text) => !text.includes("seq"))
    .map((text) => text.toWellFormed()),
  fc.constantFrom(
    "",
    DEEP,
    HUGE_NAMES,
    '{"__proto__":{"seq":1}}',
    '{"seq":-1}',
    '{"seq":1.5}',
    '{"seq":[1]}',
    "\u0000",
  ),
);

/** A feed with rising positions, of any size, between whatever else it sends. */
const feed = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: strange.map((payload) => ({ payload, step: undefined })) },
    { weight: 3, arbitrary: fc.bigInt({ min: 1n, max: 10n ** 36n }).map((step) => ({ payload: "", step })) },
  ),
  { maxLength: 20 },
);

function rowsOf(one: VirtualWorker, partition: string): Payload[] {
  return one.db
    .items(MESSAGES_TABLE)
    .filter((row) => row["connection_id"]?.S === partition && row["parts"] === undefined)
    .sort((a, b) => (BigInt(a["seq"]?.N ?? "") < BigInt(b["seq"]?.N ?? "") ? -1 : 1))
    .map((row) => row["payload"]?.S ?? row["payload"]?.B ?? "no payload");
}

async function streaming(): Promise<VirtualWorker> {
  const one = new VirtualWorker();
  await one.worker.start();
  await one.put("free");
  await one.put("positioned", POSITIONED);
  one.queue.hint("free", "positioned");
  await one.clock.advanceUntil(() => {
    for (const socket of one.dial.sockets) socket.open();
    return one.worker.health()["openSockets"] === 2;
  }, 30_000);
  return one;
}

describe("messages of any content", () => {
  it("are stored as they came, each under its position or beside the sequence", () =>
    fc.assert(
      fc.asyncProperty(feed, async (messages) => {
        const one = await streaming();
        const inOrder: Payload[] = [];
        const beside: Payload[] = [];
        let position = 0n;
        for (const { payload, step } of messages) {
          if (step !== undefined) position += step;
          const message = step === undefined ? payload : `{"x":0.5,"seq":${position}}`;
          (step === undefined ? beside : inOrder).push(message);
          for (const socket of one.dial.sockets) socket.send(message);
        }
        await one.clock.advance(7000);
        assert.deepEqual(rowsOf(one, "positioned"), inOrder);
        assert.deepEqual(rowsOf(one, unpositionedPartition("positioned")), beside);
        assert.deepEqual(
          rowsOf(one, "free"),
          messages.map(({ payload, step }, n) => (step === undefined ? payload : inOrder[countBefore(messages, n)])),
        );
        assert.equal(one.item("positioned")?.["last_seq"]?.N, inOrder.length === 0 ? undefined : String(position));
        assert.equal(one.worker.health()["openSockets"], 2);
      }),
      { numRuns: 40 },
    ));
});

function countBefore(messages: readonly { readonly step: bigint | undefined }[], n: number): number {
  return messages.slice(0, n).filter(({ step }) => step !== undefined).length;
}

describe("a peer that writes any bytes", () => {
  let upstream: RawUpstream;
  let sockets = 0;
  before(async () => {
    upstream = await RawUpstream.start();
  });
  after(() => upstream.stop());

  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((raw) => Buffer.from(raw)),
    fc
      .tuple(fc.integer({ min: 0, max: 15 }), fc.uint8Array({ maxLength: 200 }))
      .map(([opcode, payload]) => frame(opcode, Buffer.from(payload))),
    // A length of up to 2^64, and nothing behind it.
    fc
      .tuple(fc.constantFrom(0x81, 0x82, 0x01), fc.uint8Array({ minLength: 8, maxLength: 8 }))
      .map(([head, length]) => Buffer.from([head, 127, ...length])),
  );

  it("is read up to what no peer may send, and then is over; nothing is thrown, nothing is made up", () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.string({ unit: "grapheme", maxLength: 40 })), bytes, async (texts, junk) => {
        const one = new Dialled(upstream.url, { closeGraceMs: 500 });
        const { socket } = await upstream.socket(sockets++);
        socket.on("error", () => undefined);
        socket.write(Buffer.concat([...texts.map((text) => frame(OPCODE.text, text)), junk]));
        socket.end();
        await one.end();
        assert.deepEqual(one.messages.slice(0, texts.length), texts);
        // A flooded or broken socket is told once that it is over.
        assert.equal(one.ends.length, 1);
        for (const message of one.messages) assert.ok(typeof message !== "string" || message.isWellFormed());
      }),
      { numRuns: 100 },
    ));
});
