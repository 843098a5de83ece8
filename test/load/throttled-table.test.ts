import assert from "node:assert/strict";
import path from "node:path";
import { describe, it } from "node:test";
import { readServerlessFile } from "../../local/serverless-file.ts";
import { CLEAR_STORE, type StoreClimate } from "../simulation/world/weather.ts";
import { WatchedFleet } from "./support/simulated-fleet.ts";

const HELD = 30;
/** Started as the throttle begins: their hints are in the queue all the time. */
const WAITING = 10;
const MINUTE_MS = 60_000;
const THROTTLED: StoreClimate = { ...CLEAR_STORE, throttle: 1 };

const ENVIRONMENT = {
  WS_FLEET_MAX_CONNECTIONS: "60",
  WS_FLEET_TARGET_CONNECTIONS: "40",
  WS_FLEET_PING_INTERVAL_MS: "20000",
  WS_FLEET_IDLE_TIMEOUT_MS: "60000",
};

async function streaming(seed: string, waiting = 0): Promise<WatchedFleet> {
  const one = new WatchedFleet(seed, { connections: HELD + waiting, tasks: 3, environment: ENVIRONMENT });
  for (const { connectionId } of one.fleet.upstreams.slice(0, HELD)) one.fleet.start(connectionId);
  await one.until("all stream", 30_000, () => one.streaming() === HELD);
  // So that leases are in all phases of their rounds.
  await one.pass(20_000);
  one.receives.clear();
  return one;
}

/** Everything that was sent, or that anybody received in time, is in the table; no hint was taken for poison. */
async function nothingLost(one: WatchedFleet): Promise<void> {
  const { upstreams, settings } = one.fleet;
  for (const upstream of upstreams) upstream.stopProducing();
  await one.pass(2 * settings.heartbeatMs + 5000);
  for (const { connectionId, missing, sent } of one.missing()) {
    assert.equal(missing, 0, `${missing} of ${sent} messages of ${connectionId} are not stored`);
  }
  assert.equal(one.dead, 0, "a hint that is only unlucky is no poison");
}

describe("a table that throttles every request", () => {
  it("for less than a lease can bear costs nobody his lease, and no socket is dialled anew", async () => {
    const one = await streaming("short");
    const { sockets, settings, weather } = one.fleet;
    const dialled = sockets.length;
    const fromMs = one.nowMs;
    const { leaseMs, marginMs, heartbeatMs, heartbeatJitter, attempts, attemptTimeoutMs } = settings;
    const patienceMs = leaseMs - marginMs - heartbeatMs * (1 + heartbeatJitter) - attempts * attemptTimeoutMs;
    weather.store = THROTTLED;
    await one.pass(patienceMs);
    weather.store = CLEAR_STORE;
    await one.pass(2 * leaseMs);
    assert.deepEqual(one.lines(/lease fenced|lease lost|connection (released|parked)/, fromMs), []);
    assert.equal(sockets.length, dialled);
    await nothingLost(one);
  });

  it("for a minute ends each lease at its own deadline and none before; then all stream again, and nothing is lost", async () => {
    const one = await streaming("minute", WAITING);
    const { settings, weather } = one.fleet;
    const fromMs = one.nowMs;
    const budgetMs = settings.leaseMs - settings.marginMs;
    one.startAll(HELD);
    // Written, and not yet on the table's stream.
    await one.pass(90);
    weather.store = THROTTLED;
    await one.pass(MINUTE_MS);

    const fenced = one.lines(/lease fenced/, fromMs);
    assert.equal(new Set(fenced.map(({ connectionId }) => connectionId)).size, HELD);
    assert.equal(fenced.length, HELD, "each once");
    const lateMs = fenced.map(({ sinceConfirmedMs }) => sinceConfirmedMs - budgetMs);
    assert.ok(Math.min(...lateMs) >= 0, `somebody let go ${-Math.min(...lateMs)} ms before its deadline`);
    assert.ok(Math.max(...lateMs) <= 50, `somebody went on for ${Math.max(...lateMs)} ms`);
    assert.deepEqual(one.lines(/lease lost|connection (released|parked)/, fromMs), []);
    assert.equal(one.streaming(), 0);

    weather.store = CLEAR_STORE;
    const { sweepMs, hintVisibilityMs } = settings;
    const all = HELD + WAITING;
    // All leases are over by now: a sweep, its hints, or those that are hidden for a moment, and the dials.
    const tookMs = await one.until(
      "all stream again",
      sweepMs + hintVisibilityMs + 3000,
      () => one.streaming() === all,
    );
    const most = Math.max(...one.receives.values());
    console.log(
      `a minute's throttle: ${HELD} fenced ${Math.max(...lateMs).toFixed(0)} ms after their deadlines at most; ` +
        `all ${all} stream ${(tookMs / 1000).toFixed(1)} s after it; a hint was received ${most} times at most`,
    );
    const { queues } = readServerlessFile({ projectRoot: path.join(import.meta.dirname, "../..") });
    const limit = queues.find(({ logicalId }) => logicalId === "HintQueue")?.redrive?.maxReceiveCount ?? 0;
    assert.ok(most > 5, "hints came again and again");
    assert.ok(most < limit, `${most} receives would be poison beyond ${limit}`);
    await nothingLost(one);
  });

  it("nearly always for a minute ends no lease that is still renewed in time", async () => {
    const one = await streaming("nearly");
    const { settings, weather } = one.fleet;
    const fromMs = one.nowMs;
    weather.store = { ...CLEAR_STORE, throttle: 0.94 };
    await one.pass(MINUTE_MS);
    weather.store = CLEAR_STORE;
    const budgetMs = settings.leaseMs - settings.marginMs;
    for (const { connectionId, sinceConfirmedMs } of one.lines(/lease fenced/, fromMs)) {
      assert.ok(sinceConfirmedMs >= budgetMs, `${connectionId ?? ""} was let go after ${sinceConfirmedMs} ms`);
    }
    const fenced = one.lines(/lease fenced/, fromMs).length;
    assert.ok(fenced < HELD, "some of the renewals got through");
    assert.deepEqual(one.lines(/lease lost|connection (released|parked)/, fromMs), []);
    await one.until("all stream again", 16_000, () => one.streaming() === HELD);
    console.log(`94 % of the requests throttled for a minute: ${fenced} of ${HELD} fenced`);
    await nothingLost(one);
  });
});
