import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { WebSocketServer, type WebSocket } from "ws";
import { readJournal } from "../../../local/audit/journal.ts";
import { until } from "../../local/stack/until.ts";
import { Fleet } from "../support/fleet.ts";

describe("a worker that is asked to end", () => {
  let fleet: Fleet;
  let server: WebSocketServer;
  let url: string;
  /** Set by each test: what the upstream does with a new socket. */
  let greet: (peer: WebSocket) => void = () => undefined;
  before(async () => {
    fleet = await Fleet.start();
    server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await once(server, "listening");
    url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    server.on("connection", (peer) => greet(peer.on("error", () => undefined)));
  });
  after(async () => {
    await fleet.stop();
    for (const peer of server.clients) peer.terminate();
    await new Promise((resolve) => server.close(resolve));
  });

  for (const [what, entry] of [
    ["the bundle", undefined],
    ["the source", path.join(import.meta.dirname, "../../../worker/supervisor.ts")],
  ] as const) {
    it(`stores what is on its way, releases with the final position and leaves with 0; a second signal is harmless (${what})`, async () => {
      const id = entry === undefined ? "bundled" : "from-source";
      const sent: string[] = [];
      greet = (peer) => {
        const timer = setInterval(() => {
          for (let n = 0; n < 20 && peer.readyState === peer.OPEN; n++) {
            sent.push(`message ${sent.length + 1}`);
            peer.send(sent.at(-1) ?? "");
          }
        }, 2);
        peer.on("close", () => clearInterval(timer));
      };
      const one = fleet.spawn(entry === undefined ? {} : { entry });
      await fleet.connect(id, url);
      await until("messages are stored", async () => (await fleet.stored(id)).length > 100, 60_000);
      const { epoch = 0n, owner } = await fleet.lease(id);
      assert.ok(owner !== undefined && owner.length > 0);

      one.signal("SIGTERM");
      await one.said("draining");
      one.signal("SIGTERM");
      assert.deepEqual(await one.exited, { code: 0, signal: null });
      const stored = await fleet.stored(id);
      assert.deepEqual(
        stored.map(({ payload }) => payload),
        sent,
      );
      const item = await fleet.item(id);
      assert.equal(item["lease_owner"], undefined);
      assert.equal(item["lease_expires_at_ms"]?.N, "0");
      assert.equal(item["last_seq"]?.N, String(epoch * 1_000_000_000_000n + BigInt(sent.length)));
      assert.deepEqual(
        one.journal().flatMap(({ event }) => (event === "renewed" || event === "usage" ? [] : [event])),
        ["held", "open", "closed", "released"],
      );
      const { usage } = await readJournal(one.journalFile);
      assert.ok((usage.at(-1)?.writeUnits ?? 0) > 0, "the audit reads what the process used");
      assert.equal(one.errorOutput, "");
    });
  }

  it("needs no longer for ten times the connections, and no more than 5 s for 700", async () => {
    const REPLY_MS = 800;
    const environment = {
      WS_FLEET_ACQUIRES_PER_SECOND: "1000",
      WS_FLEET_DIALS_PER_SECOND: "1000",
      WS_FLEET_LEASE_MS: "20000",
      WS_FLEET_HEARTBEAT_MS: "5000",
      WS_FLEET_MARGIN_MS: "3000",
      WS_FLEET_CLOSE_GRACE_MS: "1000",
    };
    // Every peer takes its time for the close reply: one after the other would take minutes.
    greet = (peer) => {
      const answer = peer.close.bind(peer);
      peer.close = (code, reason) => void setTimeout(() => answer(code, reason), REPLY_MS);
    };
    const tookMs: number[] = [];
    for (const count of [70, 700]) {
      const ids = Array.from({ length: count }, (_, n) => `of-${count}-${n}`);
      const one = fleet.spawn({ environment });
      await one.said("worker started");
      await fleet.connectAll(ids, url);
      await one.streaming(count);
      const startMs = performance.now();
      one.signal("SIGTERM");
      assert.equal((await one.exited).code, 0);
      tookMs.push(performance.now() - startMs);
      assert.equal(one.journal("released").length, count);
      for (const id of [ids[0]!, ids.at(-1)!]) assert.equal((await fleet.lease(id)).owner, undefined);
    }
    const [few = 0, many = 0] = tookMs;
    assert.ok(many <= 5000, `${many} ms for 700`);
    assert.ok(many < 5 * few, `${many} ms for 700, ${few} ms for 70`);
  });
});
