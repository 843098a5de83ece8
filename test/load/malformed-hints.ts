import { SendMessageBatchCommand, SQSClient } from "@aws-sdk/client-sqs";
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { percentiles } from "../../local/audit/percentiles.ts";
import { encodeHint } from "../../shared/hints/hint.ts";
import { until } from "../local/stack/until.ts";
import { startServer, type TestServer } from "../support/http-server.ts";
import { Fleet } from "../worker/support/fleet.ts";
import { CountingUpstream } from "./support/counting-upstream.ts";
import { DEFAULT_TIMINGS } from "./support/environment.ts";
import { malformedBody } from "./support/malformed-body.ts";

const MALFORMED = 10_000;
/** A valid one after so many of the others. */
const EVERY = 100;
/** Far more than it takes; only a worker that stands still needs so long. */
const LIMIT_MS = 100_000;
/** Entries of one SendMessageBatch. */
const BATCH = 10;

describe("ten thousand hints that nobody can read", () => {
  let fleet: Fleet;
  let upstream: CountingUpstream;
  let metrics: TestServer;
  let sqs: SQSClient;
  before(async () => {
    fleet = await Fleet.start();
    upstream = await CountingUpstream.start();
    metrics = await startServer((response) => response.writeHead(200).end());
    sqs = new SQSClient({ endpoint: fleet.sqsEndpoint, useQueueUrlAsEndpoint: false });
  });
  after(async () => {
    sqs.destroy();
    await fleet.stop();
    await Promise.all([upstream.stop(), metrics.stop()]);
  });

  const counted = (name: string): number =>
    metrics.requests
      .flatMap(({ body }) => (JSON.parse(body) as { data: { name: string; values: number[] }[] }).data)
      .filter((datum) => datum.name === name)
      .reduce((sum, { values }) => sum + (values[0] ?? 0), 0);

  it("each go to the dead-letter queue and are counted, and hold up none of those between them", async () => {
    const worker = fleet.spawn({
      environment: {
        ...DEFAULT_TIMINGS,
        // A machine that is busy with other things must not make hints come again.
        WS_FLEET_HINT_VISIBILITY_MS: "30000",
        WS_FLEET_METRICS_URL: metrics.url,
        WS_FLEET_METRICS_MS: "1000",
      },
    });
    await worker.said("worker started");
    const ids = Array.from({ length: MALFORMED / EVERY }, (_, n) => `c-${n}`);
    for (const id of ids) await fleet.put(id, upstream.urlOf(id));

    const hintedMs = new Map<string, number>();
    const startedMs = performance.now();
    for (let n = 0; n < MALFORMED; n += BATCH) {
      const bodies = Array.from({ length: BATCH }, (_, i) => malformedBody(n + i));
      const connectionId = n % EVERY === 0 ? ids[n / EVERY] : undefined;
      if (connectionId !== undefined) {
        // In the middle of a batch that is as large as a poll.
        bodies[BATCH / 2] = encodeHint({ connectionId, reason: "started", hintedAtMs: Date.now() });
        hintedMs.set(connectionId, performance.now());
      }
      const Entries = bodies.map((MessageBody, i) => ({ Id: String(i), MessageBody }));
      await sqs.send(new SendMessageBatchCommand({ QueueUrl: fleet.queues.url, Entries }));
    }
    const malformed = MALFORMED - ids.length;
    const sentMs = performance.now() - startedMs;
    await until("all that can be read are served", () => upstream.open === ids.length, LIMIT_MS);
    await until("all others are counted", () => counted("MalformedHints") >= malformed, LIMIT_MS);
    const doneMs = performance.now() - startedMs;

    const waits = ids.map((id) => (upstream.openedMs.get(id) ?? NaN) - (hintedMs.get(id) ?? NaN));
    const { p50, p99, max } = percentiles(waits);
    console.log(
      `${malformed} malformed hints in ${(sentMs / 1000).toFixed(1)} s, done ${((doneMs - sentMs) / 1000).toFixed(1)} s later; ` +
        `hint → open: p50 ${p50?.toFixed(0) ?? ""}, p99 ${p99?.toFixed(0) ?? ""}, max ${max?.toFixed(0) ?? ""} ms`,
    );
    assert.ok(counted("MalformedHints") >= malformed);
    await until("the queue is empty", async () => {
      const { visible, inFlight } = await fleet.queues.left();
      return visible + inFlight === 0;
    });
    // Hidden for long: read through once.
    const dead = await fleet.queues.take(fleet.queues.dlqUrl, 600);
    // Twice where a hint came again before its copy was made; never nowhere.
    assert.ok(dead.length < 1.1 * malformed, `${dead.length} copies of ${malformed} hints`);
    assert.equal(new Set(dead).size, malformed);
    assert.equal((await worker.health()).status, 200);
    assert.equal(upstream.open, ids.length);
  });
});
