import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { MessageRow } from "../../../shared/messages/row.ts";
import type { Lane, MessageWriter } from "../../../worker/messages/writer.ts";
import { bench, pushAll, row, SETTINGS, Told } from "./support.ts";

const pendingOf = (writer: MessageWriter): number => writer.pendingItems;

const down = () => ({ kind: "throttle" }) as const;

/** A socket that reads whenever it is not paused, and has `overrun` messages in its buffers when it is. */
class Socket extends Told {
  readonly #next: (seq: number) => MessageRow;
  lane: Lane | undefined;
  sent = 0;

  constructor(next: (seq: number) => MessageRow) {
    super();
    this.#next = next;
  }

  receive(messages: number, overrun = 3): void {
    const paused = (): boolean => this.paused;
    if (paused()) return;
    for (let i = 0; i < messages && !paused(); i++) this.#push();
    if (paused()) for (let i = 0; i < overrun; i++) this.#push();
  }

  #push(): void {
    this.lane?.push(this.#next(++this.sent));
  }
}

describe("backpressure", () => {
  it("pauses a flooding lane at its share, and only that one, until it is down at half of it", async () => {
    const { clock, lane, db, writer } = bench({ settings: { maxItems: 800 }, faults: down });
    const { lane: flood, told } = lane();
    const { lane: quiet, told: quietTold } = lane();
    pushAll(flood, "flood", 1, 100);
    quiet.push(row("quiet", 1));
    assert.deepEqual(told.pressure, []);
    flood.push(row("flood", 101));
    assert.deepEqual(told.pressure, [true]);
    flood.push(row("flood", 102));
    quiet.push(row("quiet", 2));
    assert.deepEqual(told.pressure, [true], "only told on change");
    assert.deepEqual(quietTold.pressure, []);
    await clock.advance(10_000);
    assert.deepEqual(told.pressure, [true]);
    db.faults = () => ({ kind: "delay", ms: 100 });
    let lowest = Infinity;
    await clock.advanceUntil(() => {
      if (told.paused) lowest = Math.min(lowest, flood.pendingItems);
      return !told.paused;
    }, 60_000);
    assert.ok(lowest > 50, "read again as soon as half its share is pending");
    assert.ok(flood.pendingItems <= 50);
    await clock.advance(60_000);
    assert.deepEqual(told.pressure, [true, false]);
    assert.deepEqual(quietTold.pressure, []);
    assert.equal(writer.pendingItems, 0);
  });

  it("counts bytes as well as items", async () => {
    const { clock, lane, db } = bench({ settings: { maxBytes: 8_000_000 }, faults: down });
    const { lane: big, told } = lane();
    pushAll(big, "big", 1, 3, { payload: new Uint8Array(300_000) });
    assert.deepEqual(told.pressure, []);
    big.push(row("big", 4, { payload: new Uint8Array(300_000) }));
    assert.deepEqual(told.pressure, [true]);
    assert.ok(big.pendingBytes > 1_200_000 && big.pendingBytes < 1_202_000);
    db.faults = undefined;
    await clock.advance(20_000);
    assert.deepEqual(told.pressure, [true, false]);
    assert.equal(big.pendingBytes, 0);
  });

  it("pauses every lane that pushes above the whole bound, and reads all again at half of it", async () => {
    const { clock, lane, db, writer } = bench({ settings: { maxItems: 400 }, faults: down });
    const lanes = Array.from({ length: 41 }, () => lane());
    for (let seq = 1; seq <= 10; seq++) {
      lanes.slice(0, 40).forEach(({ lane: one }, i) => one.push(row(`c${i}`, seq)));
    }
    assert.equal(pendingOf(writer), 400);
    assert.ok(lanes.every(({ told }) => told.pressure.length === 0));
    lanes.slice(0, 20).forEach(({ lane: one }, i) => one.push(row(`c${i}`, 11)));
    assert.deepEqual(
      lanes.map(({ told }) => told.paused),
      lanes.map((_, i) => i < 20),
    );
    lanes[40]!.lane.push(row("new", 1));
    assert.ok(lanes[40]!.told.paused, "a lane without a backlog is paused too when it pushes");
    const held: number[] = [];
    db.faults = () => {
      if (lanes[40]!.told.paused) held.push(writer.pendingItems);
      return { kind: "delay", ms: 50 };
    };
    await clock.advanceUntil(() => !lanes[0]!.told.paused, 60_000);
    assert.ok(pendingOf(writer) <= 200 && Math.min(...held) > 200);
    assert.ok(lanes.every(({ told }) => !told.paused));
    await clock.advance(60_000);
    assert.equal(writer.pendingItems, 0);
    lanes.forEach(({ told }, i) => assert.deepEqual(told.pressure, i < 20 || i === 40 ? [true, false] : []));
  });

  it("bounds what is pending through an outage, loses nothing and lets everything through afterwards", async () => {
    const maxItems = 1000;
    let broken = true;
    const { clock, writer, stored } = bench({
      settings: { maxItems },
      faults: () => (broken ? { kind: "server-error" } : undefined),
    });
    const sockets = Array.from({ length: 30 }, (_, i) => {
      const socket = new Socket((seq) => row(`c${i}`, seq));
      socket.lane = writer.lane(socket);
      return socket;
    });
    for (let round = 0; round < 200; round++) {
      broken = round % 50 < 40;
      for (const socket of sockets) socket.receive(5);
      await clock.advance(100);
      assert.ok(writer.pendingItems <= maxItems + 30 * 4, `${writer.pendingItems} pending`);
    }
    broken = false;
    await clock.advance(60_000);
    assert.ok(sockets.every((socket) => !socket.paused));
    assert.equal(
      stored().size,
      sockets.reduce((sum, { sent }) => sum + sent, 0),
    );
    for (const socket of sockets) assert.equal(socket.lane?.checkpoint?.lastSeq, BigInt(socket.sent));
  });

  it("takes rows of a paused lane, and one message larger than the whole bound", async () => {
    const { clock, lane, writer, stored } = bench({ settings: { maxBytes: 1_048_576 } });
    const { lane: one, told } = lane();
    one.push(row("a", 1, { payload: new Uint8Array(3_000_000) }));
    assert.deepEqual(told.pressure, [true]);
    pushAll(one, "a", 2, 40);
    await clock.advance(10_000);
    assert.deepEqual(told.pressure, [true, false]);
    assert.equal([...stored()].filter((key) => key.startsWith("a/")).length, 40);
    assert.equal(writer.pendingBytes, 0);
  });

  it("counts durable rows behind a gap, which memory holds too", async () => {
    const { clock, db, lane } = bench({ settings: { maxItems: 800 } });
    const { lane: one, told } = lane();
    let n = 0;
    db.faults = () => (++n === 1 ? { kind: "delay", ms: 60_000 } : undefined);
    one.push(row("a", 1));
    await clock.advance(SETTINGS.lingerMs);
    for (let seq = 2; seq <= 101; seq++) {
      one.push(row("a", seq));
      await clock.advance(SETTINGS.lingerMs);
    }
    assert.equal(one.pendingItems, 1);
    assert.deepEqual(told.pressure, [true]);
    await clock.advance(60_000);
    assert.deepEqual(told.pressure, [true, false]);
    assert.equal(one.checkpoint?.lastSeq, 101n);
  });

  it("tells a closed lane nothing and does not wait for it", async () => {
    const { clock, db, lane, writer } = bench({ settings: { maxItems: 800 }, faults: down });
    const { lane: one, told } = lane();
    pushAll(one, "a", 1, 101);
    one.close();
    pushAll(one, "a", 102, 110);
    db.faults = undefined;
    await clock.advance(60_000);
    assert.deepEqual(told.pressure, [true]);
    assert.equal(one.checkpoint?.lastSeq, 110n);
    assert.equal(writer.pendingItems, 0);
  });

  it("may be answered by pushing at once", async () => {
    const { clock, db, writer, stored } = bench({ settings: { maxItems: 100 }, faults: down });
    const sockets = Array.from({ length: 12 }, (_, i) => {
      const socket = new Socket((seq) => row(`c${i}`, seq));
      const lane = writer.lane({
        onRefused: () => undefined,
        onPressure: (paused) => {
          socket.onPressure(paused);
          if (!paused && socket.sent < 100) socket.receive(20);
        },
      });
      socket.lane = lane;
      return socket;
    });
    for (const socket of sockets) socket.receive(20);
    db.faults = undefined;
    await clock.advance(120_000);
    assert.equal(writer.pendingItems, 0);
    for (const socket of sockets) {
      assert.ok(socket.sent >= 100 && !socket.paused);
      assert.equal(socket.lane?.checkpoint?.lastSeq, BigInt(socket.sent));
    }
    assert.equal(
      stored().size,
      sockets.reduce((sum, { sent }) => sum + sent, 0),
    );
  });
});
