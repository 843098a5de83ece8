import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import type { WebSocket } from "ws";
import { readMessages } from "../../local/audit/read-messages.ts";
import { until } from "../local/stack/until.ts";
import { Fleet } from "../worker/support/fleet.ts";
import { CountingUpstream } from "./support/counting-upstream.ts";
import { DEFAULT_TIMINGS } from "./support/environment.ts";
import { startSlowStore, type SlowStore } from "./support/slow-store.ts";

const SOCKETS = 20;
const MESSAGES = 250;
const MESSAGE_BYTES = 4096;
const MB = 1_048_576;
/** A tenth of what the upstream has to say. */
const BOUND_BYTES = 2 * MB;
/** What a socket may have read when it is paused: a network chunk. */
const CHUNK_BYTES = 65_536;
const MOST_GROWN_BYTES = 300 * MB;
/** With a request for each of eight batches under way, nothing moves while it is looked at. */
const SLOW_MS = 1500;

const POSITION = { M: { pointer: { S: "/seq" }, kind: { S: "sequence" }, initial: { S: "0" } } };
const messageOf = (id: string, seq: number): string => `{"seq":${seq},"id":"${id}","x":"${"x".repeat(MESSAGE_BYTES)}"}`;

/** Sends all it has as fast as the network takes it, from behind the position on. */
function flood(socket: WebSocket, id: string, after: number): void {
  for (let seq = after + 1; seq <= MESSAGES; seq++) socket.send(messageOf(id, seq));
}

const peakRssBytes = (pid: number): number =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? NaN) * 1024;

describe("upstreams that send all they have at once, while DynamoDB is slow", () => {
  let fleet: Fleet;
  let upstream: CountingUpstream;
  let store: SlowStore;
  let sockets = 0;
  before(async () => {
    fleet = await Fleet.start();
    store = await startSlowStore(fleet.dynamoDb.endpoint);
    upstream = await CountingUpstream.start({
      onOpen: (socket, id, after) => {
        sockets++;
        flood(socket, id, after);
      },
    });
  });
  after(async () => {
    await fleet.stop();
    await Promise.all([upstream.stop(), store.stop()]);
  });

  it("are paused at the writer's bound; memory stays within it, and everything is stored in the end", async () => {
    store.delayMs("BatchWriteItem", SLOW_MS);
    const worker = fleet.spawn({
      environment: {
        ...DEFAULT_TIMINGS,
        AWS_ENDPOINT_URL_DYNAMODB: store.endpoint,
        WS_FLEET_WRITER_MAX_BYTES: String(BOUND_BYTES),
      },
    });
    await worker.said("worker started");
    const pid = await worker.workerPid();
    const idleBytes = peakRssBytes(pid);
    const ids = Array.from({ length: SOCKETS }, (_, n) => `c-${n}`);
    for (const id of ids) await fleet.connect(id, upstream.urlOf(id), { upstream: { M: { position: POSITION } } });

    const health = async () => (await worker.health()).body as { pendingBytes: number; pendingMessages: number };
    let mostBytes = 0;
    const look = async (): Promise<number> => {
      const { pendingBytes } = await health();
      mostBytes = Math.max(mostBytes, pendingBytes);
      return pendingBytes;
    };
    await until("the bound is reached", async () => (await look()) >= BOUND_BYTES, 60_000);
    // Looked at for two rounds of slow writes, in which a worker that goes on reading would have read everything.
    for (const endMs = performance.now() + 2 * SLOW_MS; performance.now() < endMs;) await look();

    store.delayMs("BatchWriteItem", 0);
    const client = fleet.dynamoDb.client;
    const lastSeqOf = async (id: string) => (await fleet.item(id))["last_seq"]?.N;
    for (const id of ids) {
      await until(`${id} is stored`, async () => (await look(), (await lastSeqOf(id)) === String(MESSAGES)), 60_000);
    }
    for (const id of ids) {
      const { messages, damaged } = await readMessages({ dynamodb: client, table: fleet.messagesTable }, id);
      assert.deepEqual(damaged, []);
      assert.equal(messages.length, MESSAGES);
      for (const { seq, payload } of messages) assert.equal(payload, messageOf(id, Number(seq)));
    }
    const bound = BOUND_BYTES + SOCKETS * (CHUNK_BYTES + 2 * MESSAGE_BYTES);
    const grownBytes = peakRssBytes(pid) - idleBytes;
    const sentBytes = SOCKETS * MESSAGES * MESSAGE_BYTES;
    console.log(
      `${(sentBytes / MB).toFixed(0)} MB sent at once: at most ${(mostBytes / MB).toFixed(2)} MB unsaved ` +
        `(bound ${(BOUND_BYTES / MB).toFixed(0)} MB); ` +
        `RSS ${(idleBytes / MB).toFixed(0)} → ${((idleBytes + grownBytes) / MB).toFixed(0)} MB at its peak`,
    );
    assert.ok(mostBytes <= bound, `${mostBytes} bytes unsaved, ${bound} allowed`);
    // Mostly garbage that waits to be collected: it grows with the rate, not with what the upstreams have to say.
    assert.ok(grownBytes < MOST_GROWN_BYTES, `RSS grew by ${grownBytes} bytes`);
    // A lease may end on a machine that stands still; memory is not bounded by dropping connections.
    assert.ok(sockets < 2 * SOCKETS, `${sockets} sockets for ${SOCKETS} connections`);
  });
});
