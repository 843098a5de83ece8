import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { HealthServer, type HealthReport } from "../../../worker/telemetry/health.ts";

describe("the health endpoint", () => {
  let server: HealthServer;
  let report: HealthReport;
  afterEach(() => server.close());

  const start = async (): Promise<string> => {
    report = { healthy: true, connections: 3 };
    server = new HealthServer(() => report);
    return `http://127.0.0.1:${await server.listen(0)}`;
  };

  it("answers 200 while healthy and 503 otherwise, each time with the reasons", async () => {
    const url = await start();
    const good = await fetch(`${url}/health`);
    assert.deepEqual([good.status, await good.json()], [200, { healthy: true, connections: 3 }]);
    report = { healthy: false, connections: 3 };
    const bad = await fetch(`${url}/health`);
    assert.deepEqual([bad.status, await bad.json()], [503, report]);
  });

  it("knows no other path and no other method", async () => {
    const url = await start();
    assert.equal((await fetch(url)).status, 404);
    assert.equal((await fetch(`${url}/health`, { method: "POST" })).status, 404);
  });

  it("closes although a client keeps its connection", async () => {
    const url = await start();
    await (await fetch(`${url}/health`)).text();
    await server.close();
    await assert.rejects(fetch(`${url}/health`));
    await start();
  });

  it("says when the port is taken", async () => {
    const url = await start();
    const second = new HealthServer(() => report);
    await assert.rejects(second.listen(Number(new URL(url).port)), { code: "EADDRINUSE" });
  });
});
