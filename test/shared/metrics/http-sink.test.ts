import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { HttpSink } from "../../../shared/metrics/http-sink.ts";
import { single, type MetricDatum } from "../../../shared/metrics/sink.ts";
import { startServer, type TestServer } from "../../support/http-server.ts";

describe("HttpSink", () => {
  let server: TestServer | undefined;
  afterEach(async () => {
    await server?.stop();
    server = undefined;
  });
  const serving = async (answer: Parameters<typeof startServer>[0]): Promise<TestServer> =>
    (server = await startServer(answer));

  it("posts source and data as JSON", async () => {
    const { url, requests } = await serving((response) => response.writeHead(204).end());
    const data: MetricDatum[] = [
      single("ActiveConnections", 12),
      { name: "RenewalLatency", values: [1.5, 2], counts: [3, 4] },
    ];
    await new HttpSink(`${url}/metrics`, "worker-1", 5000).publish(data);
    assert.equal(requests.length, 1);
    assert.equal(requests[0]!.headers["content-type"], "application/json");
    assert.deepEqual(JSON.parse(requests[0]!.body), { source: "worker-1", data });
  });

  for (const status of [400, 404, 500, 503]) {
    it(`throws on ${status}`, async () => {
      const { url } = await serving((response) => response.writeHead(status).end("no"));
      await assert.rejects(new HttpSink(url, "s", 5000).publish([]), new RegExp(String(status)));
    });
  }

  it("throws when no answer comes in time, or when an answer stalls", async () => {
    for (const answer of [
      () => undefined,
      (response: Parameters<Parameters<typeof startServer>[0]>[0]) => {
        response.writeHead(200, { "content-length": "10" }).write("half");
      },
    ]) {
      const { url } = await serving(answer);
      await assert.rejects(new HttpSink(url, "s", 150).publish([]), { name: "TimeoutError" });
      await server?.stop();
    }
  });

  it("throws when nobody listens", async () => {
    const { url, stop } = await serving(() => undefined);
    await stop();
    await assert.rejects(new HttpSink(url, "s", 5000).publish([]));
  });
});
