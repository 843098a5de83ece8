import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PositionReader } from "../../worker/connection/position.ts";
import { until } from "../local/stack/until.ts";
import { Dialled } from "./support/dialled.ts";
import { at, POSITIONED } from "./support/line.ts";
import { frame, OPCODE, RawUpstream } from "./support/raw-upstream.ts";
import { VirtualWorker } from "./support/virtual-worker.ts";

/** A worker with `ids` streaming. */
async function streaming(items: Readonly<Record<string, Parameters<VirtualWorker["put"]>[1]>>): Promise<VirtualWorker> {
  const one = new VirtualWorker();
  void one.worker.start();
  const ids = Object.keys(items);
  for (const id of ids) await one.put(id, items[id]);
  one.queue.hint(...ids);
  await one.clock.advanceUntil(() => {
    for (const socket of one.dial.sockets) socket.open();
    return one.worker.health()["openSockets"] === ids.length;
  }, 30_000);
  return one;
}

async function drained(one: VirtualWorker): Promise<boolean> {
  let clean: boolean | undefined;
  void one.worker.drain().then((answer) => (clean = answer));
  await one.clock.advanceUntil(() => clean !== undefined, 70_000);
  return clean === true;
}

describe("a hostile message", () => {
  const big = 12345678901234567890n;

  it("of any depth is read exactly, or not at all, and never throws", () => {
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    assert.equal(new PositionReader("/seq").sequence(`{"x":${deep},"seq":${big},"y":${deep}}`), big);
    assert.equal(new PositionReader("/x/0").sequence(`{"x":${deep},"seq":${big}}`), undefined);
  });

  it("reads beyond 2^53 like JSON.parse: the last of equal names, escapes, arrays, strings that look like structure", () => {
    const read = (pointer: string, text: string) => new PositionReader(pointer).sequence(text);
    assert.equal(read("/a", `{"a":1,"a":${big}}`), big);
    assert.equal(read("/a", `{"a":${big},"a":1}`), 1n);
    assert.equal(read("/é", `{ "\\u00e9" : ${big} }`), big);
    assert.equal(read("/1", `[ "]}\\\\\\"," , ${big} ]`), big);
    assert.equal(read("/a/b", `{"z":{"b":5},"a":{"x":"{\\"b\\":7}","b":\n${big}}}`), big);
    assert.equal(read("", ` ${big} `), big);
    assert.equal(read("/a", `{"a":${big}.0}`), undefined);
    assert.equal(read("/a", `{"a":1e30}`), undefined);
  });

  it("has no cursor that could not be stored", () => {
    const cursor = (value: string) => new PositionReader("/c").cursor(`{"c":${value}}`);
    assert.equal(cursor("1".repeat(300_000)), undefined);
    assert.equal(cursor(`"${"x".repeat(300_000)}"`), undefined);
    assert.equal(cursor(String(big)), String(big));
  });
});

describe("a hostile peer", () => {
  it("that sends pings and never reads gets no more answers than it leaves unread", async () => {
    const upstream = await RawUpstream.start();
    try {
      const one = await new Dialled(upstream.url).opened();
      const { socket } = await upstream.socket();
      socket.removeAllListeners("data");
      socket.pause();
      const chunk = Buffer.concat(Array.from({ length: 500 }, () => frame(OPCODE.ping, Buffer.alloc(125))));
      const before = process.memoryUsage().rss;
      // About 100 MB of pings, each worth as large an answer.
      for (let sent = 0; sent < 1600; sent++) {
        if (!socket.write(chunk)) await new Promise((resolve) => socket.once("drain", resolve));
      }
      assert.ok(process.memoryUsage().rss - before < 60_000_000, "answers piled up");
      one.socket.terminate();
    } finally {
      await upstream.stop();
    }
  });

  it("that floods a paused socket with tiny messages is ended", async () => {
    const upstream = await RawUpstream.start();
    try {
      const one = await new Dialled(upstream.url).opened();
      one.onEach = () => one.socket.pause();
      const { socket } = await upstream.socket();
      socket.on("error", () => undefined);
      socket.write(Buffer.concat(Array.from({ length: 30_000 }, () => frame(OPCODE.text, Buffer.from("")))));
      assert.match((await one.end()).error ?? "", /faster than can be stored/);
      assert.ok(one.messages.length < 10_000);
    } finally {
      await upstream.stop();
    }
  });

  it("that goes on sending while its socket is closed is cut off", async () => {
    const upstream = await RawUpstream.start();
    try {
      const one = await new Dialled(upstream.url).opened();
      const { socket } = await upstream.socket();
      socket.on("error", () => undefined);
      let going = true;
      const flood = (): void => {
        if (going && socket.writable)
          socket.write(frame(OPCODE.binary, Buffer.alloc(100_000)), () => setImmediate(flood));
      };
      flood();
      await until("something arrives", () => one.messages.length > 0);
      const before = one.messages.length;
      one.socket.close(20_000);
      assert.match((await one.end()).error ?? "", /goes on sending/);
      going = false;
      assert.ok(one.messages.length - before <= 12);
    } finally {
      await upstream.stop();
    }
  });

  it("that numbers anew is parked, and nothing of its new numbering is stored behind the old", async () => {
    const one = await streaming({ c: POSITIONED });
    const [socket] = one.dial.sockets;
    socket!.send(...[1, 2, 3].map(at));
    await one.clock.advance(500);
    socket!.send(...[1, 2, 3, 4, 5, 6, 7, 8].map(at));
    await one.clock.advance(5000);
    const item = one.item("c");
    assert.equal(item?.["last_seq"]?.N, "3");
    assert.match(item["last_error"]?.S ?? "", /position fell from 3 to 1/);
    assert.equal(await drained(one), true);
  });
});

describe("an item whose content the store refuses", () => {
  it("is parked all the same, without the words, and holds up no drain", async () => {
    const one = await streaming({ good: {}, bad: { failure_count: { S: "x" } } });
    for (const socket of one.dial.sockets) socket.end({ code: 1008 });
    await one.clock.advance(5000);
    assert.equal(one.lease("bad").owner, undefined);
    assert.ok((one.lease("bad").expiresAtMs ?? 0) > one.clock.wallMs(), "parked, not free");
    assert.equal(one.lease("good").owner, undefined);
    assert.equal(await drained(one), true);
  });

  it("is parked within its acquire when it is malformed besides", async () => {
    const one = new VirtualWorker();
    void one.worker.start();
    await one.put("bad", { failure_count: { S: "x" }, ws_url: { S: "http://no" } });
    one.queue.hint("bad");
    await one.clock.advance(10_000);
    assert.equal(one.worker.health()["acquiring"], 0);
    assert.equal(one.lease("bad").owner, undefined);
    assert.equal(await drained(one), true);
  });
});

describe("a queue that brings hints, but not those of the sweep", () => {
  it("does not keep a worker from finding orphans itself", async () => {
    const one = new VirtualWorker();
    void one.worker.start();
    await one.clock.advance(2000);
    await one.put("orphan", {
      lease_owner: { S: "dead" },
      lease_epoch: { N: "5" },
      lease_expires_at_ms: { N: String(one.clock.wallMs() + 5000) },
    });
    for (let n = 0; n < 4; n++) {
      await one.put(`started${n}`);
      one.queue.hint(`started${n}`);
      await one.clock.advance(20_000);
    }
    assert.notEqual(one.lease("orphan").owner, "dead");
  });
});
