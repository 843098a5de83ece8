import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, it } from "node:test";
import { silentLogger } from "../../../shared/logger.ts";
import { ClockErrorBound } from "../../../worker/lease/clock-error-bound.ts";
import { ClockGuard } from "../../../worker/lease/clock-guard.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import { until } from "../../local/stack/until.ts";

describe("the platform's own word on the clock", () => {
  let body = "{}";
  let asked = 0;
  const server = createServer((request, response) => {
    asked++;
    response.writeHead(request.url === "/v4/abc/task" ? 200 : 404, { "content-type": "application/json" }).end(body);
  });
  before(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
  after(() => server.close());
  beforeEach(() => (asked = 0));

  const make = (path = "/v4/abc") => {
    const clock = new VirtualClock();
    const guard = new ClockGuard(clock, { skewMs: 1000, windowMs: 60_000, minObservations: 3 });
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;
    return { clock, guard, bound: new ClockErrorBound({ endpoint, clock, guard, logger: silentLogger, fetch }) };
  };
  const drift = (ms: number): string =>
    JSON.stringify({ TaskARN: "arn", ClockDrift: { ClockErrorBound: ms, ClockSynchronizationStatus: "SYNCHRONIZED" } });

  it("stops a worker beyond the skew, and lets it go on once it is within again", async () => {
    const { clock, guard, bound } = make();
    body = drift(1000);
    await bound.start();
    assert.equal(guard.beyondSkew(), false);
    body = drift(1000.5);
    await clock.advance(30_000);
    await until("it asks again", () => asked === 2 && guard.beyondSkew());
    guard.reset();
    assert.equal(guard.beyondSkew(), true, "anchoring anew does not mend the host's clock");
    body = drift(0.5);
    await until("the timer is set again", () => clock.pendingTimers > 0);
    await clock.advance(30_000);
    await until("it is within the skew", () => !guard.beyondSkew());
    bound.stop();
  });

  it("says nothing where it is absent, malformed or out of reach", async () => {
    for (const [text, path] of [
      ['{"TaskARN":"arn"}', "/v4/abc"],
      ['{"ClockDrift":{"ClockErrorBound":"far"}}', "/v4/abc"],
      ["<html>", "/v4/abc"],
      [drift(5000), "/elsewhere"],
    ] as const) {
      body = path === "/v4/abc" ? text : "not found";
      const { guard, bound } = make(path);
      guard.reportErrorBound(5000);
      await bound.start();
      assert.equal(guard.beyondSkew(), false, text);
      bound.stop();
    }
  });
});
