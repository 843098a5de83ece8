import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { Upstream } from "../../local/upstream/client.ts";
import { buildCorpus } from "../../local/upstream/corpus.ts";
import type { SocketEvent, UpstreamConfig } from "../../local/upstream/protocol.ts";
import { readRecord } from "../../local/upstream/record.ts";
import type { ConnectionRecord } from "../../local/upstream/record.ts";
import { loadSpeeches } from "../../local/upstream/speeches.ts";
import type { Transcript } from "../../local/upstream/transcript.ts";
import { FeedClient, until } from "./helpers/feed-client.ts";

/** Segments come fast, so that a test need not wait for them. */
const fast: UpstreamConfig = { seed: 3, connections: 4, seconds: 0.5, rate: 400, liveShare: 0 };
const speeches = loadSpeeches();

let upstream: Upstream;
let folder: string;
const clients: FeedClient[] = [];

before(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "ws-fleet-upstream-"));
  upstream = await Upstream.start();
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.ws.terminate();
  await until("no open socket", async () => (await upstream.status()).openSockets === 0);
});
after(async () => {
  await upstream.stop();
  await rm(folder, { recursive: true });
});

async function configure(config: UpstreamConfig): Promise<readonly Transcript[]> {
  const { transcripts } = buildCorpus(speeches, config);
  assert.deepEqual(await upstream.configure(config), { segmentsPerConnection: transcripts[0]!.length });
  return transcripts;
}

function dial(transcript: Transcript, cursor: bigint | "" = ""): FeedClient {
  const client = new FeedClient(
    upstream.wsUrl(transcript.kind, transcript.connectionId).replace("{cursor}", String(cursor)),
  );
  clients.push(client);
  return client;
}

async function recordOf(transcript: Transcript): Promise<ConnectionRecord> {
  const { path: file } = await upstream.report(path.join(folder, "record.ndjson"));
  const record = (await readRecord(file)).connections.find((one) => one.connectionId === transcript.connectionId);
  assert.ok(record);
  return record;
}

const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;
const payloads = (transcript: Transcript, from = 0, to = transcript.length): string[] =>
  Array.from({ length: to - from }, (_, at) => transcript.payloadAt(from + at));

describe("a replaying feed", () => {
  it("speaks everything in order, with exact positions beyond 2^53", async () => {
    const transcripts = await configure(fast);
    const readers = transcripts.map((transcript) => dial(transcript));
    await Promise.all(readers.map((reader) => reader.receive(50)));
    readers.forEach((reader, at) => assert.deepEqual(reader.received, payloads(transcripts[at]!)));
    const digits = /^\{"seq":(\d+),/u.exec(readers[1]!.received[7]!)![1]!;
    assert.equal(BigInt(digits), transcripts[1]!.positionAt(7));
    assert.ok(BigInt(digits) > 2n ** 53n);
    const { complete, segmentsSent, framesSent, openSockets } = await upstream.status();
    assert.deepEqual({ complete, segmentsSent, framesSent, openSockets }, { complete: 4, segmentsSent: 200, framesSent: 200, openSockets: 4 }); // prettier-ignore
  });

  for (const cursor of ["exclusive", "inclusive"] as const) {
    it(`goes on from a cursor (${cursor}), and records what each socket was sent`, async () => {
      const [, transcript] = await configure({ ...fast, cursor });
      assert.ok(transcript);
      const first = dial(transcript);
      await first.receive(50);
      await first.close();
      const second = dial(transcript, transcript.positionAt(20));
      const from = cursor === "exclusive" ? 21 : 20;
      await second.receive(50 - from);
      assert.deepEqual(second.received, payloads(transcript, from));

      const record = await recordOf(transcript);
      assert.equal(record.sent, 50);
      const [a, b] = record.sockets;
      assert.ok(a && b);
      assert.deepEqual([a.firstSegment, a.lastSegment, a.sent], [0, 49, 50]);
      assert.deepEqual([b.firstSegment, b.lastSegment, b.sent], [from, 49, 50 - from]);
      assert.equal(a.closeCode, 1000);
      assert.ok(a.closedAtMs !== null && a.closedAtMs >= a.frames[0]!.atMs && a.frames[0]!.atMs >= a.openedAtMs);
      assert.deepEqual(a.frames.map(({ kind }) => kind), ["close"]); // prettier-ignore
      assert.equal(b.closedAtMs, null);
    });
  }

  it("serves two sockets of one connection at once", async () => {
    const [transcript] = await configure(fast);
    assert.ok(transcript);
    const both = [dial(transcript), dial(transcript)];
    await Promise.all(both.map((reader) => reader.receive(50)));
    for (const reader of both) assert.deepEqual(reader.received, payloads(transcript));
    assert.equal((await recordOf(transcript)).sockets.length, 2);
  });

  it("sends nothing before it is due, and the rest on time", async () => {
    const transcripts = await configure({ ...fast, connections: 10, seconds: 1, rate: 200 });
    const readers = transcripts.map((transcript) => dial(transcript));
    await Promise.all(readers.map((reader) => reader.receive(20)));
    for (const [at, transcript] of transcripts.entries()) {
      const { startedAtMs } = await recordOf(transcript);
      assert.ok(startedAtMs !== null);
      readers[at]!.receivedAtMs.forEach((atMs, segment) => {
        const dueAtMs = startedAtMs + transcript.phaseMs + segment * transcript.intervalMs;
        assert.ok(atMs >= dueAtMs, `segment ${segment} came ${dueAtMs - atMs} ms early`);
        assert.ok(atMs < dueAtMs + 5000, `segment ${segment} came ${atMs - dueAtMs} ms late`);
      });
    }
  });

  it("waits for a slow reader and drops nothing", async () => {
    const count = 80_000;
    const [transcript] = await configure({ seed: 3, connections: 1, seconds: 1, rate: count, liveShare: 0 });
    assert.ok(transcript);
    const reader = dial(transcript);
    await reader.outcome;
    reader.ws.pause();
    const { startedAtMs } = await recordOf(transcript);
    let sent = -1;
    await until("the upstream stops sending although all is due", async () => {
      const before = sent;
      sent = (await upstream.status()).framesSent;
      return sent === before && nowMs() > startedAtMs! + 1000;
    });
    assert.ok(sent < count, `all ${count} segments went out to a reader that does not read`);
    reader.ws.resume();
    await reader.receive(count);
    assert.deepEqual(reader.received, payloads(transcript));
  });

  it("stays open behind the last segment and pings on", async () => {
    const [transcript] = await configure({ ...fast, seconds: 0.05, pingMs: 30 });
    assert.ok(transcript);
    const reader = dial(transcript);
    await reader.receive(transcript.length);
    const before = reader.pings;
    await until("three more pings", () => reader.pings >= before + 3);
    assert.equal(reader.closeCode, undefined);
    await until("the pongs are recorded", async () => {
      const { frames } = (await recordOf(transcript)).sockets[0]!;
      return frames.filter(({ kind }) => kind === "pong").length >= 3;
    });
  });
});

describe("a live feed", () => {
  const live: UpstreamConfig = { ...fast, connections: 1, seconds: 3, rate: 100, liveShare: 1 };

  it("speaks on while nobody listens, and says what went where", async () => {
    const [transcript] = await configure(live);
    assert.ok(transcript);
    assert.equal(transcript.kind, "live");
    const first = dial(transcript);
    await first.receive(10);
    await first.close();
    await until("ten segments spoken to nobody", async () => (await upstream.status()).missed >= 10);
    const second = dial(transcript);
    await until("the end", async () => (await upstream.status()).complete === 1);
    const record = await recordOf(transcript);
    await second.receive(record.sockets[1]!.sent);

    assert.equal(record.spoken.length, 300);
    const heard = (socket: number): string[] =>
      record.spoken.flatMap(({ sockets }, segment) =>
        sockets.includes(socket) ? [transcript.payloadAt(segment)] : [],
      );
    assert.deepEqual(first.received, heard(record.sockets[0]!.socket));
    assert.deepEqual(second.received, heard(record.sockets[1]!.socket));
    const missed = record.spoken.filter(({ sockets }) => sockets.length === 0);
    assert.ok(missed.length >= 10);
    assert.equal(first.received.length + missed.length + second.received.length, 300);
    assert.equal((await upstream.status()).missed, missed.length);
    record.spoken.forEach(({ atMs }, segment) => {
      assert.ok(atMs >= record.startedAtMs! + transcript.phaseMs + segment * transcript.intervalMs);
    });
    assert.match(first.received[0]!, /^\{"n":1,"speaker":/u);
  });

  it("speaks to two sockets of one connection at once", async () => {
    const [transcript] = await configure({ ...live, seconds: 0.5 });
    assert.ok(transcript);
    const both = [dial(transcript), dial(transcript)];
    await until("the end", async () => (await upstream.status()).complete === 1);
    const { spoken } = await recordOf(transcript);
    const last = spoken.at(-1);
    assert.equal(last?.sockets.length, 2);
    await until("both have the last", () => both.every(({ received }) => received.at(-1) === transcript.payloadAt(49)));
  });
});

describe("faults and control", () => {
  it("refuses what it does not speak, before the upgrade", async () => {
    const [transcript] = await configure(fast);
    assert.ok(transcript);
    const base = `ws://127.0.0.1:${upstream.port}`;
    const id = transcript.connectionId;
    const asked: [string, number][] = [
      [`${base}/replay/nobody`, 404],
      [`${base}/live/${id}`, 404],
      [`${base}/${id}`, 404],
      [`${base}/replay/${id}?cursor=1.5`, 400],
      [`${base}/replay/${id}?cursor=-1`, 400],
    ];
    for (const [url, status] of asked) assert.equal(await new FeedClient(url).outcome, status, url);
  });

  it("refuses upgrades for a while when told to", async () => {
    const [transcript] = await configure(fast);
    assert.ok(transcript);
    await upstream.refuse(60_000, 429);
    assert.equal(await dial(transcript).outcome, 429);
    assert.equal((await upstream.status()).refused, 1);
    await upstream.refuse(0);
    assert.equal(await dial(transcript).outcome, "open");
  });

  it("sends nothing while stalled, and everything afterwards", async () => {
    const [transcript] = await configure({ ...fast, pingMs: 20 });
    assert.ok(transcript);
    const startMs = nowMs();
    await upstream.stall(700);
    const reader = dial(transcript);
    let firstPingAtMs: number | undefined;
    reader.ws.once("ping", () => (firstPingAtMs = nowMs()));
    await reader.receive(50);
    assert.deepEqual(reader.received, payloads(transcript));
    await until("a ping", () => firstPingAtMs !== undefined);
    assert.ok(Math.min(...reader.receivedAtMs, firstPingAtMs!) >= startMs + 700);
  });

  it("cuts the named sockets without a close frame and tells of every open and close", async () => {
    const transcripts = await configure(fast);
    const events: SocketEvent[] = [];
    const unsubscribe = upstream.onEvent((event) => events.push(event));
    const [cut, kept] = [dial(transcripts[0]!), dial(transcripts[1]!)];
    assert.deepEqual(await Promise.all([cut.outcome, kept.outcome]), ["open", "open"]);
    assert.deepEqual(await upstream.terminate([transcripts[0]!.connectionId]), { terminated: 1 });
    await until("the cut", () => cut.closeCode !== undefined);
    assert.equal(cut.closeCode, 1006);
    assert.equal(kept.closeCode, undefined);
    const record = await recordOf(transcripts[0]!);
    const [socket] = record.sockets;
    assert.ok(socket?.closedAtMs);
    assert.equal(socket.cut, "fault");
    assert.deepEqual(socket.frames, []);
    // Events of the test before may still be on their way.
    const mine = (): SocketEvent[] => events.filter((event) => event.socket === socket.socket);
    await until("both events", () => mine().length >= 2);
    unsubscribe();
    const common = { connectionId: record.connectionId, remotePort: socket.remotePort, socket: socket.socket };
    assert.deepEqual(mine(), [
      { kind: "opened", atMs: socket.openedAtMs, ...common },
      { kind: "closed", atMs: socket.closedAtMs, code: 1006, ...common },
    ]);
  });

  it("closes all with a close frame, and only then takes a new configuration", async () => {
    const transcripts = await configure(fast);
    const readers = transcripts.map((transcript) => dial(transcript));
    await Promise.all(readers.map(({ outcome }) => outcome));
    await assert.rejects(upstream.configure(fast), /configure: 4 sockets are open/);
    assert.deepEqual(await upstream.closeAll(1012), { closed: 4 });
    await until("all closed", () => readers.every(({ closeCode }) => closeCode === 1012));
    await configure(fast);
    assert.deepEqual((await recordOf(transcripts[0]!)).sockets, []);
  });

  it("refuses a bad configuration and an early report", async () => {
    await assert.rejects(upstream.configure({ ...fast, rate: 0 }), /rate must be greater than 0/);
    await assert.rejects(upstream.configure({ ...fast, pingMs: 0 }), /pingMs must be greater than 0/);
    const other = await Upstream.start();
    await assert.rejects(other.report(path.join(folder, "none")), /configure the upstream first/);
    await other.stop();
    await assert.rejects(other.status(), /has ended/);
    await other.stop();
  });

  it("does not outlive its parent", async () => {
    const parent = fork(fileURLToPath(new URL("helpers/upstream-parent.ts", import.meta.url)), [], { execArgv: [] });
    const [pid] = (await once(parent, "message")) as [number];
    assert.ok(alive(pid));
    parent.kill("SIGKILL");
    await until("the upstream has ended", () => !alive(pid));
  });
});

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
