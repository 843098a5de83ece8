import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo, connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { Proxies } from "../../../local/chaos/proxy/client.ts";
import { silentLogger } from "../../../shared/logger.ts";
import { alive, until } from "../stack/until.ts";

describe("the process of the proxies", () => {
  const server = createServer((socket) => socket.on("error", () => undefined).pipe(socket));
  const lost: string[] = [];
  let proxies: Proxies;
  before(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const target = { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
    proxies = await Proxies.start({
      proxies: [
        { target, webSocket: false },
        { target, webSocket: true },
      ],
      seed: 1,
      env: {},
      logger: silentLogger,
      onLost: (what) => lost.push(what),
    });
  });
  after(async () => {
    await proxies.stop();
    server.close();
  });

  it("disturbs the way that it is asked to, tells what came of it, and refuses what it does not know", async () => {
    const client = connect(proxies.ports[0] ?? 0, "127.0.0.1");
    let echoed = "";
    client.on("data", (chunk) => (echoed += chunk.toString()));
    client.write("one");
    await until("the echo", () => echoed === "one");
    const effect = { kind: "black-hole", direction: "out" } as const;
    await proxies.call("begin", { id: 5, effect, share: 1, proxies: [0] });
    client.write("two");
    const bytesOut = async (): Promise<number> => (await proxies.call("totals", {})).totals[0]?.bytesOut ?? 0;
    await until("it to be under way", async () => (await bytesOut()) === 6);
    assert.equal(echoed, "one");
    assert.deepEqual(await proxies.call("end", { id: 5 }), { connections: 1, bytes: 3 });
    await until("the echo", () => echoed === "onetwo");
    client.destroy();
    await assert.rejects(proxies.call("end", { id: 5 }), /fault 5 is not on/);
    await assert.rejects(proxies.call("records", { proxy: 9 }), /proxy must be below 2, got 9/);
    assert.deepEqual((await proxies.call("records", { proxy: 1 })).records, []);
  });

  it("ends when it is asked to, and tells only of an end that nobody asked for", async () => {
    await proxies.stop();
    await assert.rejects(proxies.call("totals", {}), /the network has ended/);
    assert.equal(lost.length, 0);
    const target = { host: "127.0.0.1", port: 1 };
    const other = await Proxies.start({
      proxies: [{ target, webSocket: false }],
      seed: 1,
      env: {},
      logger: silentLogger,
      onLost: (what) => lost.push(what),
    });
    assert.ok(alive(other.pid));
    process.kill(other.pid, "SIGKILL");
    await until("the loss to be told", () => lost.length === 1);
    assert.match(lost.join(), /the network ended \(signal SIGKILL\)/);
    await other.stop();
  });
});
