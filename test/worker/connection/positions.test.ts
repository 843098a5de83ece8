import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { at, Line, LINE_SETTINGS, POSITIONED, positionedBy } from "../support/line.ts";

const CURSOR = {
  ws_url: { S: "wss://feed.test/?from={cursor}" },
  upstream: { M: { position: { M: { pointer: { S: "/c" }, kind: { S: "cursor" }, initial: { S: "begin" } } } } },
};

describe("a positioned feed", () => {
  it("is keyed by its own positions, exact beyond 2^53, and resumed behind the last one received", async () => {
    const line = await Line.streaming({ item: { ...POSITIONED, last_seq: { N: "9007199254740990" } } });
    assert.equal(line.socket.url, "wss://feed.test/?from=9007199254740990");
    line.socket.send(at(9007199254740992n), at(9007199254740993n));
    assert.deepEqual(line.lane.seqs, [9007199254740992n, 9007199254740993n]);
    line.socket.end({ code: 1006 });
    assert.equal((await line.dialled(2)).url, "wss://feed.test/?from=9007199254740993");
  });

  it("is resumed from what was received, stored or not", async () => {
    const line = await Line.streaming({ item: POSITIONED });
    line.lane.hold();
    line.socket.send(at(5));
    line.socket.end({ code: 1006 });
    assert.equal((await line.dialled(2)).url, "wss://feed.test/?from=5");
  });

  it("takes the last position again as the repetition that an inclusive resume brings", async () => {
    const line = await Line.streaming({ item: { ...POSITIONED, last_seq: { N: "7" } } });
    line.socket.send(at(7), at(8), at(8), at(9));
    assert.deepEqual(line.lane.seqs, [8n, 9n]);
    assert.equal(line.count("MessagesRepeated"), 2);
    assert.equal(line.state, "streaming");
  });

  it("is parked when its positions fall, and nothing stored is overwritten", async () => {
    const line = await Line.streaming({ item: { ...POSITIONED, last_seq: { N: "100" } } });
    line.socket.send(at(101), at(3), at(4), at(102));
    assert.equal(line.state, "draining");
    line.socket.end();
    await line.untilEnded();
    assert.equal(line.state, "parked");
    assert.deepEqual(line.lane.seqs, [101n], "what follows belongs to the other numbering, however high it gets");
    assert.equal(line.item["last_error"]?.S, "position fell from 101 to 3");
    assert.equal(line.item["failure_count"]?.N, "1");
    assert.equal(line.lease.owner, undefined);
    assert.equal(line.lease.expiresAtMs, line.heart.anchored.nowMs() + LINE_SETTINGS.fatalParkMs);
    assert.equal(line.count("ConnectionsParked"), 1);
  });

  it("keeps messages without a position beside the sequence, where they claim no place in it", async () => {
    const line = await Line.streaming({ item: POSITIONED });
    const greeting = '{"type":"hello"}';
    const binary = new Uint8Array([1, 2]);
    line.socket.send(greeting, at(1), "no JSON", binary, at(2));
    assert.deepEqual(line.lane.seqs, [1n, 2n]);
    const aside = line.lane.rows.filter(({ checkpointed }) => !checkpointed).map(({ row }) => row);
    assert.deepEqual(
      aside.map(({ payload }) => payload),
      [greeting, "no JSON", binary],
    );
    const base = line.holding.epoch * 1_000_000_000_000n;
    assert.deepEqual(
      aside.map(({ connectionId, seq }) => [connectionId, seq]),
      [1n, 2n, 3n].map((n) => ["c#unpositioned", base + n]),
    );
    assert.equal(line.count("MessagesWithoutPosition"), 3);
  });

  it("finds no position in bytes, whatever text they would make", async () => {
    const line = await Line.streaming({ item: positionedBy("") });
    line.socket.send(new Uint8Array([5]), "6");
    assert.deepEqual(line.lane.seqs, [6n]);
  });

  it("is read by the old settings until its old socket has ended", async () => {
    const line = await Line.streaming({ item: positionedBy("/seq") });
    line.socket.send(at(1));
    await line.change(positionedBy("/new"));
    assert.equal(line.socket.state, "closing");
    line.socket.send(at(2), at(3));
    assert.deepEqual(line.lane.seqs, [1n, 2n, 3n]);
    line.socket.end();
    (await line.dialled(2)).open();
    line.socket.send('{"new":4}');
    assert.deepEqual(line.lane.seqs, [1n, 2n, 3n, 4n]);
  });
});

describe("the order in which rows are stored", () => {
  it("is that of their arrival where nothing is replayed, and free where a replay fills every hole", async () => {
    assert.deepEqual((await Line.start({ item: POSITIONED })).lane.options, { inOrder: false });
    assert.deepEqual((await Line.start({ item: CURSOR })).lane.options, { inOrder: true });
    assert.deepEqual((await Line.start()).lane.options, { inOrder: true });
  });
});

describe("an unpositioned feed", () => {
  it("is keyed by epoch and count, so that no two owners ever write the same key", async () => {
    const line = await Line.streaming();
    line.socket.send("a", "a");
    line.socket.end({ code: 1006 });
    (await line.dialled(2)).open();
    line.socket.send(new Uint8Array([7]));
    const base = line.holding.epoch * 1_000_000_000_000n;
    assert.deepEqual(line.lane.seqs, [base + 1n, base + 2n, base + 3n]);
    assert.deepEqual(line.lane.payloads, ["a", "a", new Uint8Array([7])]);
    assert.ok(line.lane.rows.every(({ row }) => row.epoch === line.holding.epoch && row.connectionId === "c"));
  });

  it("is given its own cursor back, beginning at the initial one", async () => {
    const line = await Line.streaming({ item: CURSOR });
    assert.equal(line.socket.url, "wss://feed.test/?from=begin");
    line.socket.send('{"c":"x/1"}', '{"other":1}', "no JSON");
    assert.deepEqual(
      line.lane.rows.map(({ row }) => ("cursor" in row ? row.cursor : "none")),
      ["x/1", "none", "none"],
    );
    line.socket.end({ code: 1006 });
    assert.equal((await line.dialled(2)).url, "wss://feed.test/?from=x%2F1");
  });

  it("finds no cursor in bytes, whatever text they would make", async () => {
    const position = { M: { pointer: { S: "" }, kind: { S: "cursor" }, initial: { S: "begin" } } };
    const line = await Line.streaming({ item: { ...CURSOR, upstream: { M: { position } } } });
    line.socket.send(new Uint8Array([5]));
    line.socket.end({ code: 1006 });
    assert.equal((await line.dialled(2)).url, "wss://feed.test/?from=begin");
  });

  it("goes on from the cursor that an earlier owner stored", async () => {
    const line = await Line.start({ item: { ...CURSOR, last_cursor: { S: "stored" } } });
    assert.equal(line.socket.url, "wss://feed.test/?from=stored");
  });
});
