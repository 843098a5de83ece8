import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { WebSocketServer } from "ws";
import { alive, until } from "../../local/stack/until.ts";
import { Fleet } from "../support/fleet.ts";

/** Long enough that a lease which is free within seconds cannot have expired. */
const LONG_LEASE = { WS_FLEET_LEASE_MS: "600000" };

describe("the death of a task's process", () => {
  let fleet: Fleet;
  let server: WebSocketServer;
  let url: string;
  before(async () => {
    fleet = await Fleet.start();
    server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await once(server, "listening");
    url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  after(async () => {
    await fleet.stop();
    for (const peer of server.clients) peer.terminate();
    await new Promise((resolve) => server.close(resolve));
  });

  it("of the worker alone: its supervisor frees the leases at once and leaves with 137", async () => {
    const one = fleet.spawn({ environment: LONG_LEASE });
    const ids = Array.from({ length: 20 }, (_, n) => `killed-${n}`);
    for (const id of ids) await fleet.connect(id, url);
    await one.streaming(20);
    const epochs = await Promise.all(ids.map(async (id) => (await fleet.lease(id)).epoch));

    process.kill(await one.workerPid(), "SIGKILL");
    const killedMs = performance.now();
    await until("the leases are free", async () => {
      const leases = await Promise.all(ids.map((id) => fleet.lease(id)));
      return leases.every(({ owner, expiresAtMs }) => owner === undefined && expiresAtMs === 0);
    });
    assert.ok(performance.now() - killedMs < 15_000, "they would have lasted for ten minutes");
    assert.deepEqual(await one.exited, { code: 137, signal: null });
    assert.equal(one.lines("worker died: freeing its leases")[0]?.["signal"], "SIGKILL");
    assert.deepEqual(await Promise.all(ids.map(async (id) => (await fleet.lease(id)).epoch)), epochs);
  });

  it("of the supervisor: the worker does not outlive it", async () => {
    const one = fleet.spawn();
    await one.said("worker started");
    const workerPid = await one.workerPid();
    one.signal("SIGKILL");
    await until("the worker is gone", () => !alive(workerPid));
    assert.deepEqual(await one.exited, { code: null, signal: "SIGKILL" });
  });

  it("of a worker that hangs in its drain: it is killed, its leases are freed, and there is still time to say so", async () => {
    const one = fleet.spawn({
      environment: {
        ...LONG_LEASE,
        // The supervisor waits for five seconds less than this.
        WS_FLEET_STOP_TIMEOUT_MS: "7000",
        WS_FLEET_DRAIN_BUDGET_MS: "1500",
      },
    });
    await fleet.connect("hanging", url);
    await one.streaming(1);
    process.kill(await one.workerPid(), "SIGSTOP");
    one.signal("SIGTERM");
    assert.deepEqual(await one.exited, { code: 137, signal: null });
    assert.equal(one.lines("worker did not end in time: killed").length, 1);
    assert.deepEqual(
      [(await fleet.lease("hanging")).owner, (await fleet.lease("hanging")).expiresAtMs],
      [undefined, 0],
    );
  });
});
