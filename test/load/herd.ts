import { SQSClient } from "@aws-sdk/client-sqs";
import { BatchWriteItemCommand } from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import type { WebSocket } from "ws";
import { SqsHintQueue } from "../../functions/core/hint-queue.ts";
import { RecentHints } from "../../functions/core/recent-hints.ts";
import { sweep } from "../../functions/core/sweep.ts";
import { silentLogger } from "../../shared/logger.ts";
import { until } from "../local/stack/until.ts";
import { Fleet } from "../worker/support/fleet.ts";
import type { WorkerProcess } from "../worker/support/worker-process.ts";
import { CountingUpstream } from "./support/counting-upstream.ts";
import { DEFAULT_TIMINGS } from "./support/environment.ts";

/**
 * Two herds on real parts: thousands of connections that are started at once, and a thousand leases that expire at once.
 * Run by itself: it wants both cores for a minute.
 */

const CONNECTIONS = 2000;
const TASKS = 4;
/** Killed with what they hold, about half of all. */
const KILLED = 2;
const MESSAGES = 5;
/** Long enough that the cap on handshakes at once is what holds a worker back. */
const HANDSHAKE_MS = 800;
const ACQUIRES_PER_SECOND = 100;
const DIALS_PER_SECOND = 100;
const DIALS_AT_ONCE = 50;
const SKEW_MS = 1000;
const SWEEP_MS = 10_000;
const LEASE_MS = 20_000;
/** A busy machine takes longer; only a fleet that does not get on takes so long. */
const LIMIT_MS = 100_000;
const MB = 1_048_576;
const MAX_RSS_BYTES = 512 * MB;

const POSITION = { M: { pointer: { S: "/seq" }, kind: { S: "sequence" }, initial: { S: "0" } } };
const ids = Array.from({ length: CONNECTIONS }, (_, n) => `c-${n}`);

/** Most of these moments within any span of this length. */
function mostWithin(timesMs: readonly number[], spanMs: number): number {
  const sorted = timesMs.toSorted((a, b) => a - b);
  let [first, most] = [0, 0];
  for (const [last, atMs] of sorted.entries()) {
    while (atMs - (sorted[first] ?? 0) > spanMs) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

describe("herds", () => {
  let fleet: Fleet;
  let upstream: CountingUpstream;
  let sqs: SQSClient;
  let sweeping: NodeJS.Timeout;
  let deepest = 0;
  const workers: WorkerProcess[] = [];
  /** Messages that a connection's upstream has to say by now; sent again behind any position. */
  let toSay = MESSAGES;
  const sockets = new Map<string, WebSocket>();
  const send = (socket: WebSocket, after: number): void => {
    for (let seq = after + 1; seq <= toSay; seq++) socket.send(`{"seq":${seq}}`);
  };

  before(async () => {
    fleet = await Fleet.start();
    sqs = new SQSClient({ endpoint: fleet.sqsEndpoint, useQueueUrlAsEndpoint: false });
    upstream = await CountingUpstream.start({
      handshakeMs: HANDSHAKE_MS,
      onOpen: (socket, id, behind) => {
        sockets.set(id, socket);
        send(socket, behind);
      },
    });
    const environment = {
      ...DEFAULT_TIMINGS,
      WS_FLEET_ACQUIRES_PER_SECOND: String(ACQUIRES_PER_SECOND),
      WS_FLEET_DIALS_PER_SECOND: String(DIALS_PER_SECOND),
      WS_FLEET_MAX_CONCURRENT_DIALS: String(DIALS_AT_ONCE),
      // The cap spreads the first herd; when half of the tasks are gone, the others have room for all.
      WS_FLEET_MAX_CONNECTIONS: String(CONNECTIONS / KILLED),
      WS_FLEET_TARGET_CONNECTIONS: "700",
      WS_FLEET_LOG_LEVEL: "error",
    };
    for (let n = 0; n < TASKS; n++) workers.push(fleet.spawn({ environment }));
    // At this log level the start is not told; the journal's first line of usage is.
    await until("all workers run", () => workers.every((worker) => worker.journal().length > 0), LIMIT_MS);
  });
  after(async () => {
    clearInterval(sweeping);
    await fleet.stop();
    await upstream.stop();
    sqs.destroy();
  });

  const recent = new RecentHints(10_000, 50_000);
  const sweepOnce = async (): Promise<void> => {
    const queue = new SqsHintQueue(sqs, fleet.queues.url);
    const table = { client: fleet.dynamoDb.client, tableName: fleet.connectionsTable };
    const { depth } = await sweep(
      { table, queue, recent, nowMs: () => Date.now(), logger: silentLogger },
      { skewMs: SKEW_MS, pageSize: 1000, maxHints: 10_000, inFlight: 8 },
    );
    deepest = Math.max(deepest, depth);
  };

  async function putAll(): Promise<void> {
    for (let from = 0; from < CONNECTIONS; from += 25) {
      const puts = ids.slice(from, from + 25).map((id) => ({
        PutRequest: {
          Item: {
            connection_id: { S: id },
            desired_state: { S: "STARTED" },
            ws_url: { S: upstream.urlOf(id) },
            upstream: { M: { position: POSITION } },
            lease_expires_at_ms: { N: "0" },
          },
        },
      }));
      const RequestItems = { [fleet.connectionsTable]: puts };
      await fleet.dynamoDb.client.send(new BatchWriteItemCommand({ RequestItems }));
    }
  }

  const heldMs = (worker: WorkerProcess): number[] => worker.journal("held").map(({ t }) => t);
  const peakRssBytes = async (worker: WorkerProcess): Promise<number> => {
    const status = readFileSync(`/proc/${await worker.workerPid()}/status`, "utf8");
    return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? NaN) * 1024;
  };
  /** By checkpoint: it covers only what is in the table. */
  const allStored = async (): Promise<void> => {
    for (const id of ids) {
      const stored = async () => (await fleet.item(id))["last_seq"]?.N === String(toSay);
      await until(`${id} is stored`, stored, LIMIT_MS);
    }
    for (const id of ids.filter((_, n) => n % 100 === 0)) {
      const expected = Array.from({ length: toSay }, (_, n) => ({ seq: BigInt(n + 1), payload: `{"seq":${n + 1}}` }));
      assert.deepEqual(await fleet.stored(id), expected);
    }
  };

  function checkDials(from: number, tasks: number): string {
    const aSecond = upstream.mostDialsWithin(1000, from);
    // A quarter of a second's dials may be saved up, and a delayed accept makes two seconds' ends meet.
    const bound = tasks * DIALS_PER_SECOND * 1.25;
    assert.ok(aSecond <= bound * 1.1, `${aSecond} dials in a second, ${bound} allowed`);
    assert.ok(upstream.mostAtOnce <= tasks * DIALS_AT_ONCE, `${upstream.mostAtOnce} handshakes at once`);
    return `most dials in a second ${aSecond} (bound ${bound}), at once ${upstream.mostAtOnce} (bound ${tasks * DIALS_AT_ONCE})`;
  }

  it("of 2,000 connections that are started at once are spread, capped, and lose nothing", async () => {
    await putAll();
    const startedMs = performance.now();
    sweeping = setInterval(() => void sweepOnce().catch((error: unknown) => console.error(error)), SWEEP_MS);
    await sweepOnce();
    await until("all stream", () => upstream.open === CONNECTIONS, LIMIT_MS);
    const streamingMs = performance.now() - startedMs;
    await allStored();
    const storedMs = performance.now() - startedMs;

    const held = workers.map((worker) => heldMs(worker).length);
    const rates = workers.map((worker) => mostWithin(heldMs(worker), 1000));
    const rss = Math.max(...(await Promise.all(workers.map(peakRssBytes))));
    console.log(
      `${CONNECTIONS} started: all open after ${(streamingMs / 1000).toFixed(1)} s, all stored after ${(storedMs / 1000).toFixed(1)} s; ` +
        `${checkDials(0, TASKS)}; held per task ${held.join(", ")}; most acquired in a second ${rates.join(", ")}; ` +
        `peak RSS ${(rss / MB).toFixed(0)} MB; deepest queue ${deepest}`,
    );
    assert.equal(
      held.reduce((sum, n) => sum + n),
      CONNECTIONS,
      "each acquired once",
    );
    assert.equal(upstream.dialsMs.length, CONNECTIONS, "each dialled once");
    assert.equal(upstream.doubled, 0);
    assert.ok(Math.min(...held) >= CONNECTIONS / TASKS / 5, `spread over all tasks: ${held.join(", ")}`);
    // Half a second's tokens may be saved up; answers that were late arrive with those in time.
    for (const rate of rates) assert.ok(rate <= 2 * ACQUIRES_PER_SECOND, `${rate} acquired in a second`);
    assert.ok(rss < MAX_RSS_BYTES);
    // A sweep tops up; the queue's own counts are a moment old.
    assert.ok(deepest <= 1.5 * CONNECTIONS, `${deepest} hints in the queue`);
  });

  it("of leases that expire at once are taken over spread and capped, and all stream again", async () => {
    const [dead, living] = [workers.slice(0, KILLED), workers.slice(KILLED)];
    const orphans = dead.reduce((sum, worker) => sum + heldMs(worker).length, 0);
    const before = upstream.dialsMs.length;
    upstream.mostAtOnce = 0;
    toSay = 2 * MESSAGES;
    const killedMs = performance.now();
    for (const worker of dead) await worker.destroy();
    for (const socket of sockets.values()) if (socket.readyState === socket.OPEN) send(socket, MESSAGES);
    await until("the dead are gone", () => upstream.open <= CONNECTIONS - orphans, LIMIT_MS);
    await until("all stream again", () => upstream.open === CONNECTIONS, LIMIT_MS);
    const recoveredMs = performance.now() - killedMs;
    await allStored();

    const dials = upstream.dialsMs.slice(before);
    const firstMs = (dials[0] ?? NaN) - killedMs;
    const spreadMs = (dials.at(-1) ?? NaN) - (dials[0] ?? NaN);
    console.log(
      `${orphans} leases expired: first dial after ${(firstMs / 1000).toFixed(1)} s, all open after ${(recoveredMs / 1000).toFixed(1)} s; ` +
        `dials spread over ${(spreadMs / 1000).toFixed(1)} s; ${checkDials(before, living.length)}`,
    );
    assert.ok(orphans >= CONNECTIONS / 4, `${orphans} leases were to expire`);
    assert.equal(dials.length, orphans, "each dialled once");
    assert.equal(upstream.doubled, 0);
    // Lease, sweep and 3 s as for one; and what the caps make of so many.
    const herdMs = (orphans / (living.length * DIALS_AT_ONCE * 0.8)) * HANDSHAKE_MS;
    const boundMs = LEASE_MS + SWEEP_MS + 3000 + herdMs;
    assert.ok(recoveredMs <= boundMs * 1.5, `${recoveredMs} ms, ${boundMs} ms on a quiet machine`);
    for (const worker of living) assert.ok((await peakRssBytes(worker)) < MAX_RSS_BYTES);
  });
});
