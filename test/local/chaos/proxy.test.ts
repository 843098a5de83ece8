import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, it } from "node:test";
import { until } from "../stack/until.ts";
import { frame, Scene, upgrade } from "./helpers.ts";

describe("the fault-injecting proxy", () => {
  let scene: Scene;
  beforeEach(async () => {
    scene = await Scene.start();
  });
  afterEach(() => scene.stop());

  it("lets everything through while there is no fault, an end each way included", async () => {
    const { client, server } = await scene.connected();
    client.socket.end("question");
    await server.gets("question");
    await until("the client's end", () => server.ended);
    assert.equal(client.closed, false, "the other direction stays open");
    server.socket.end("answer");
    await client.gets("answer");
    await until("both ends to be closed", () => client.closed && server.closed);
    assert.deepEqual([client.errorCode, server.errorCode], [undefined, undefined]);
    await until("the proxy to forget it", () => scene.proxy.open === 0);
    assert.deepEqual(scene.proxy.totals, { connections: 1, bytesOut: 13, bytesIn: 6, broken: 0 });
  });

  it("delays by the latency and half of the jitter, and keeps the order", async () => {
    const { client, server } = await scene.connected();
    const fault = scene.begin({ kind: "latency", latencyMs: 200, jitterMs: 200 });
    const sentAtMs = performance.now();
    for (const word of ["a", "b", "c"]) client.socket.write(word);
    await server.gets("abc");
    const tookMs = performance.now() - sentAtMs;
    assert.ok(tookMs >= 299, `300 ms on its way, took ${tookMs}`);
    server.socket.write("back");
    await client.gets("back");
    assert.ok(performance.now() - sentAtMs >= 598, "the way back is delayed as well");
    assert.deepEqual([fault.connections, fault.bytes], [1, 7]);
  });

  it("lets what waits arrive at once when the latency ends", async () => {
    const { client, server } = await scene.connected();
    const fault = scene.begin({ kind: "latency", latencyMs: 3_600_000, jitterMs: 0 });
    client.socket.write("late");
    await until("it to be under way", () => fault.bytes === 4);
    assert.equal(server.received, "");
    scene.proxy.end(fault);
    await server.gets("late");
  });

  it("lets no more through than the bandwidth", async () => {
    const { client, server } = await scene.connected();
    scene.begin({ kind: "slow", bytesPerSecond: 2_000 });
    const sentAtMs = performance.now();
    client.socket.write("x".repeat(1_000));
    await until("a part of it", () => server.receivedBytes > 100);
    assert.ok(server.receivedBytes < 900, `comes in pieces, ${server.receivedBytes} at once`);
    await until("all of it", () => server.receivedBytes === 1_005);
    assert.ok(performance.now() - sentAtMs >= 490, "1,000 bytes take half a second");
  });

  for (const direction of ["out", "in", "both"] as const) {
    it(`swallows what goes ${direction} without telling anybody, and brings it when it is over`, async () => {
      const { client, server } = await scene.connected();
      const fault = scene.begin({ kind: "black-hole", direction });
      client.socket.write("one ");
      server.socket.write("eins ");
      await until("both to be under way", () => fault.bytes === 9);
      if (direction === "out") await client.gets("eins ");
      if (direction === "in") await server.gets("one ");
      if (direction !== "in") assert.equal(server.received, "");
      if (direction !== "out") assert.equal(client.received, "");
      client.socket.end("two");
      await until("the end to be sent", () => fault.bytes === 12);
      assert.deepEqual([client.closed, server.closed], [false, false]);
      if (direction !== "in") assert.equal(server.ended, false, "the end is swallowed, too");
      scene.proxy.end(fault);
      await server.gets("one two");
      await client.gets("eins ");
      await until("the end", () => server.ended);
    });
  }

  it("reads no more of a sender than it may hold", async () => {
    const { client, server } = await scene.connected();
    const fault = scene.begin({ kind: "black-hole", direction: "out" });
    const bytes = 16 * 1024 * 1024;
    client.socket.write(Buffer.alloc(bytes));
    await until("the proxy to be full", () => scene.proxy.totals.bytesOut > 256 * 1024);
    for (let n = 0; n < 1_000; n += 1) await turn();
    const held = scene.proxy.totals.bytesOut;
    assert.ok(held <= (256 + 64) * 1024 + 5, `at most the limit and one chunk, got ${held}`);
    scene.proxy.end(fault);
    await until("all of it", () => server.receivedBytes === bytes + 5);
  });

  it("resets both ends, again and again, and lets new connections in between", async () => {
    const first = await scene.connected("first");
    const fault = scene.begin({ kind: "reset", everyMs: 300 });
    await until("both ends of the first", () => first.client.closed && first.server.closed);
    assert.deepEqual([first.client.errorCode, first.server.errorCode], ["ECONNRESET", "ECONNRESET"]);
    const second = await scene.connected("second");
    await until("both ends of the second", () => second.client.closed && second.server.closed);
    scene.proxy.end(fault);
    const third = await scene.connected("third");
    third.client.socket.write("still here");
    await third.server.gets("still here");
    assert.equal(scene.proxy.totals.broken, 2);
  });

  it("cuts what is open and refuses what is new until it is over", async () => {
    const first = await scene.connected("first");
    const fault = scene.begin({ kind: "cut" });
    await until("both ends of the first", () => first.client.closed && first.server.closed);
    const refused = scene.dial();
    await until("the new one to be refused", () => refused.closed);
    scene.proxy.end(fault);
    await scene.connected("third");
  });

  it("plays several faults at once, and each ends for itself", async () => {
    const { client, server } = await scene.connected();
    const hole = scene.begin({ kind: "black-hole", direction: "out" });
    const latency = scene.begin({ kind: "latency", latencyMs: 3_600_000, jitterMs: 0 });
    client.socket.write("held");
    await until("it to be under way", () => latency.bytes === 4 && hole.bytes === 4);
    scene.proxy.end(hole);
    for (let n = 0; n < 100; n += 1) await turn();
    assert.equal(server.received, "", "the latency is still on");
    scene.proxy.end(latency);
    await server.gets("held");
  });

  it("tells a client that its target is gone", async () => {
    const { client, server } = await scene.connected();
    server.socket.resetAndDestroy();
    await until("the client to know", () => client.closed);
    assert.equal(client.errorCode, "ECONNRESET");
  });
});

describe("the proxy in front of a WebSocket server", () => {
  let scene: Scene;
  beforeEach(async () => {
    scene = await Scene.start({ webSocket: true });
  });
  afterEach(() => scene.stop());

  it("hits the chosen share of connections, always the same ones", async () => {
    const ids = Array.from({ length: 40 }, (_, n) => `c${n}`);
    const ends = await Promise.all(ids.map((id) => scene.connected(upgrade(id))));
    const hit = async (): Promise<string[]> => {
      const fault = scene.begin({ kind: "black-hole", direction: "in" }, 0.5, 7);
      for (const { server } of ends) server.socket.write("?");
      const before = ends.map(({ client }) => client.receivedBytes);
      await until("the others to hear it", () => {
        const heard = ends.filter(({ client }, at) => client.receivedBytes > (before[at] ?? 0)).length;
        return heard + fault.connections === ids.length;
      });
      const silent = ids.filter((_, at) => ends[at]?.client.receivedBytes === before[at]);
      scene.proxy.end(fault);
      await until("all to hear it", () => ends.every(({ client }, at) => client.receivedBytes > (before[at] ?? 0)));
      return silent;
    };
    const first = await hit();
    assert.ok(first.length > 8 && first.length < 32, `about half of 40, got ${first.length}`);
    assert.deepEqual(await hit(), first);
  });

  it("notes when a frame was sent, however long it is on its way", async () => {
    const { client, server } = await scene.connected(upgrade("c1"));
    const fault = scene.begin({ kind: "black-hole", direction: "out" });
    const [record] = scene.proxy.records;
    assert.ok(record);
    client.socket.write(frame(9));
    await until("the ping to be noted", () => record.frames.length === 1);
    assert.equal(record.frames[0]?.kind, "ping");
    assert.equal(server.received, "");
    assert.equal(record.clientPort, client.socket.localPort);
    assert.equal(record.serverPort, server.socket.remotePort);
    scene.proxy.end(fault);
    await until("the ping to arrive", () => server.received.length === 6);
    assert.equal(record.frames.length, 1);
  });

  it("notes since when something is lost that a fault held back", async () => {
    const { client, server } = await scene.connected(upgrade("c1"));
    const lostFromMs = (): number | undefined => scene.proxy.records[0]?.lostFromMs;
    server.socket.write("heard");
    await client.gets("heard");
    const beganAtMs = Number(process.hrtime.bigint()) / 1e6;
    const fault = scene.begin({ kind: "black-hole", direction: "in" });
    server.socket.write("unheard");
    await until("it to be under way", () => fault.bytes === 7);
    assert.equal(lostFromMs(), undefined, "it may still arrive");
    client.socket.destroy();
    const atMs = await until("the loss to be noted", lostFromMs);
    assert.ok(atMs >= beganAtMs);
  });

  it("notes as lost what comes to a client that left, while a fault keeps the server from knowing", async () => {
    const { client, server } = await scene.connected(upgrade("c1"));
    const [record] = scene.proxy.records;
    assert.ok(record);
    const fault = scene.begin({ kind: "black-hole", direction: "out" });
    client.socket.end();
    await until("the client's end to be known", () => client.socket.writableFinished);
    await until("the loss to be noted", () => {
      server.socket.write("?");
      return record.lostFromMs !== undefined;
    });
    scene.proxy.end(fault);
    await until("the server to know", () => server.ended);
  });

  it("notes as lost what is said to a client whose leaving was held back, even when the server knows at last", async () => {
    const fault = scene.begin({ kind: "black-hole", direction: "out" });
    const client = scene.dial();
    client.socket.write(upgrade("c1"));
    client.socket.end();
    await until("all to be under way", () => fault.bytes > 0 && client.socket.writableFinished);
    scene.proxy.end(fault);
    const server = await until("the server's end", () => scene.accepted.find(({ ended }) => ended));
    server.socket.end("said to nobody");
    await until("the loss to be noted", () => scene.proxy.records[0]?.lostFromMs !== undefined);
  });

  it("notes no loss for a client that leaves of its own accord", async () => {
    const { client, server } = await scene.connected(upgrade("c1"));
    const [record] = scene.proxy.records;
    assert.ok(record);
    client.socket.destroy();
    server.socket.write("nobody hears it");
    await until("the server to know", () => server.ended || server.closed);
    server.socket.end();
    await until("the proxy to forget it", () => scene.proxy.open === 0);
    assert.deepEqual([record.lostFromMs, record.brokenAtMs], [undefined, undefined]);
  });

  it("notes when a fault broke a connection", async () => {
    const { client } = await scene.connected(upgrade("c1"));
    const fault = scene.begin({ kind: "cut" });
    await until("the client to know", () => client.closed);
    assert.ok(scene.proxy.records[0]?.brokenAtMs !== undefined);
    assert.equal(fault.connections, 1);
  });
});
