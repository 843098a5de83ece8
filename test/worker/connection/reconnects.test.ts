import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SocketEnd } from "../../../worker/connection/close-codes.ts";
import { DialGate } from "../../../worker/connection/dial-gate.ts";
import { Line, LINE_SETTINGS } from "../support/line.ts";

const { reconnectBaseMs, reconnectCapMs, connectGiveUpMs, fatalParkMs, parkBaseMs, maxParkMs } = LINE_SETTINGS;
/** A socket that lived for so long was no accident. */
const STABLE_MS = 5000;

/** A gate whose places are all taken by somebody else. */
function occupied(gate: DialGate): DialGate {
  gate.enter("feed.test", () => undefined);
  return gate;
}

/** Ends the present socket and returns the delay until the next dial. */
async function redialAfter(line: Line, end: SocketEnd): Promise<number> {
  const dials = line.dial.sockets.length;
  line.socket.end(end);
  const endedAtMs = line.clock.monotonicMs();
  return (await line.dialled(dials + 1, 3_600_000)).dialledAtMs - endedAtMs;
}

describe("a socket that ends", () => {
  for (const end of [
    { code: 1008, reason: "policy" },
    { code: 4004 },
    { code: 1009 },
    { httpStatus: 401 },
    { httpStatus: 404 },
  ]) {
    it(`parks for people to see after ${JSON.stringify(end)}, and is not dialled again`, async () => {
      const line = await Line.start();
      if (end.code !== undefined) line.socket.open();
      line.socket.end(end);
      await line.untilEnded();
      assert.equal(line.state, "parked");
      assert.equal(line.lease.owner, undefined);
      assert.equal(line.lease.expiresAtMs, line.heart.anchored.nowMs() + fatalParkMs);
      assert.match(line.item["last_error"]?.S ?? "", /closed with|handshake answered/);
      assert.equal(line.item["failure_count"]?.N, "1");
      await line.clock.advance(120_000);
      assert.equal(line.dial.sockets.length, 1);
    });
  }

  it("never parks for longer than the longest park, jitter included", async () => {
    const settings = { fatalParkMs: maxParkMs };
    const line = await Line.start({ settings, random: () => 0.999 });
    line.socket.end({ httpStatus: 403 });
    await line.untilEnded();
    assert.ok((line.lease.expiresAtMs ?? Infinity) <= line.heart.anchored.nowMs() + maxParkMs);
  });

  it("is given the whole time to connect however long it waited for its turn to dial", async () => {
    let gate: DialGate | undefined;
    const line = await Line.start({ dialGate: (clock) => (gate = occupied(new DialGate(clock, 1, 1000))) });
    await line.clock.advance(connectGiveUpMs + 1000);
    assert.equal(line.dial.sockets.length, 0);
    gate?.leave("feed.test");
    await line.dialled(1, 1000);
    line.socket.end({ code: 1006 });
    await line.dialled(2, 10_000);
    assert.equal(line.state, "connecting");
  });

  it("is dialled again at once when that is routine and it had lived", async () => {
    for (const code of [1000, 1001, 1012]) {
      const line = await Line.streaming({ random: () => 0.999 });
      await line.clock.advance(STABLE_MS);
      assert.equal(await redialAfter(line, { code }), 0, String(code));
    }
  });

  it("is dialled again after a jittered delay that doubles with every failure, up to the cap", async () => {
    const line = await Line.start({ random: () => 0.999, settings: { connectGiveUpMs: 3_600_000 } });
    const bounds = [500, 1000, 2000, 4000, 8000, reconnectCapMs, reconnectCapMs];
    for (const bound of bounds) {
      const delayMs = await redialAfter(line, { code: 1006 });
      assert.ok(delayMs <= bound && delayMs > bound * 0.99, `${delayMs} of ${bound}`);
    }
  });

  it("uses the whole range of its jitter", async () => {
    const line = await Line.start({ random: () => 0 });
    assert.equal(await redialAfter(line, { code: 1006 }), 0);
  });

  it("does not spin when a routine close comes right after every open", async () => {
    const line = await Line.streaming({ random: () => 0.999, settings: { connectGiveUpMs: 3_600_000 } });
    let totalMs = 0;
    for (let n = 0; n < 8; n++) {
      totalMs += await redialAfter(line, { code: 1012 });
      line.socket.open();
    }
    assert.ok(totalMs > 30_000, `${totalMs}`);
  });

  it("starts its back-off from the beginning after a socket that lived", async () => {
    const line = await Line.start({ random: () => 0.999 });
    for (let n = 0; n < 4; n++) await redialAfter(line, { code: 1006 });
    line.socket.open();
    await line.clock.advance(STABLE_MS);
    const delayMs = await redialAfter(line, { code: 1006 });
    assert.ok(delayMs > reconnectBaseMs * 0.99 && delayMs <= reconnectBaseMs, `${delayMs}`);
    assert.equal(line.count("ConnectFailures"), 4, "the one that lived is none");
  });

  it("is left alone for longer when the upstream is busy, and for as long as it asks", async () => {
    for (const [end, leastMs] of [
      [{ code: 1013 }, reconnectCapMs / 2],
      [{ httpStatus: 503 }, reconnectCapMs / 2],
      [{ httpStatus: 429, retryAfterMs: 30_000 }, 30_000],
    ] as const) {
      const line = await Line.start({ random: () => 0 });
      if ("code" in end) line.socket.open();
      assert.equal(await redialAfter(line, end), leastMs);
    }
  });

  it("is dialled by a jittered delay beyond that, so that not all come back at once", async () => {
    const line = await Line.streaming({ random: () => 0.999 });
    await line.clock.advance(STABLE_MS);
    const delayMs = await redialAfter(line, { code: 1013 });
    assert.ok(delayMs > reconnectCapMs / 2 + reconnectBaseMs * 0.99, `${delayMs}`);
  });

  it("is waited for, its lease kept, for just as long as a dial may fail", async () => {
    const line = await Line.start();
    assert.equal(await redialAfter(line, { httpStatus: 503, retryAfterMs: connectGiveUpMs }), connectGiveUpMs);
    assert.equal(line.lease.owner, "me");
  });

  for (const retryAfterMs of [connectGiveUpMs + 1, 86_400_000, 1e15]) {
    it(`holds no lease while it waits for an upstream that asks for ${retryAfterMs} ms`, async () => {
      const line = await Line.start();
      line.socket.end({ httpStatus: 503, retryAfterMs });
      await line.untilEnded();
      assert.equal(line.state, "parked");
      assert.equal(line.lease.owner, undefined);
      assert.equal(line.lease.expiresAtMs, line.heart.anchored.nowMs() + Math.min(retryAfterMs, maxParkMs));
      assert.equal(line.item["last_error"]?.S, `not before ${retryAfterMs} ms: handshake answered with HTTP 503`);
      assert.equal(line.dial.sockets.length, 1);
    });
  }

  it("is parked when no dial succeeds for long, for a time that grows with every failure in a row", async () => {
    for (const [failures, fullMs] of [
      [0, parkBaseMs],
      [3, parkBaseMs * 8],
      [60, maxParkMs],
    ] as const) {
      for (const random of [() => 0, () => 0.999]) {
        const line = await Line.start({ random, item: { failure_count: { N: String(failures) } } });
        for (let n = 1; !line.ended && n < 2000; n++) {
          await line.clock.advance(250);
          line.socket.end({ code: 1006, error: "ECONNREFUSED" });
        }
        await line.untilEnded();
        assert.equal(line.state, "parked");
        const parkMs = (line.lease.expiresAtMs ?? 0) - line.heart.anchored.nowMs();
        assert.ok(parkMs >= fullMs * 0.45 && parkMs <= fullMs, `${parkMs} of ${fullMs}`);
        assert.equal(line.item["failure_count"]?.N, String(failures + 1));
        assert.equal(
          line.item["last_error"]?.S,
          `not connected for ${connectGiveUpMs} ms: closed with 1006: ECONNREFUSED`,
        );
      }
    }
  });

  it("is parked for long failure also after it had lived, counted from then", async () => {
    const line = await Line.streaming();
    await line.clock.advance(connectGiveUpMs);
    line.socket.end({ code: 1006 });
    const sinceMs = line.clock.monotonicMs();
    for (let n = 1; !line.ended && n < 2000; n++) {
      await line.clock.advance(250);
      line.socket.end({ code: 1006, error: "ECONNREFUSED" });
    }
    assert.equal(line.state, "parked");
    const tookMs = line.clock.monotonicMs() - sinceMs;
    assert.ok(tookMs > connectGiveUpMs && tookMs <= connectGiveUpMs + 2 * reconnectCapMs, `${tookMs}`);
  });

  it("is parked too when it opens and dies again and again, and never lives", async () => {
    const line = await Line.streaming();
    for (let n = 0; !line.ended && n < 2000; n++) {
      if (line.socket.state === "dialling") line.socket.open();
      await line.clock.advance(1000);
      line.socket.end({ code: 1006 });
    }
    assert.equal(line.state, "parked");
    assert.ok(line.clock.monotonicMs() <= connectGiveUpMs + 2 * reconnectCapMs, `${line.clock.monotonicMs()}`);
  });

  it("is not parked for failures that are far apart", async () => {
    const line = await Line.streaming();
    for (let n = 0; n < 50; n++) {
      await line.clock.advance(connectGiveUpMs / 2);
      await redialAfter(line, { code: 1006 });
      line.socket.open();
    }
    assert.equal(line.state, "streaming");
  });
});
