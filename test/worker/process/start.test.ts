import assert from "node:assert/strict";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { startServer } from "../../support/http-server.ts";
import { until } from "../../local/stack/until.ts";
import { Fleet } from "../support/fleet.ts";

const SOURCE = path.join(import.meta.dirname, "../../../worker");

describe("the start of a worker", () => {
  let fleet: Fleet;
  before(async () => {
    fleet = await Fleet.start();
  });
  after(() => fleet.stop());

  for (const entry of ["supervisor.ts", "main.ts"]) {
    it(`is refused with code 2 and the names of the variables and rules: ${entry}`, async () => {
      const one = fleet.spawn({
        entry: path.join(SOURCE, entry),
        environment: { WS_FLEET_HEARTBEAT_MS: "soon", WS_FLEET_DLQ_URL: "ftp://nowhere/", WS_FLEET_LEASE_MILLIS: "5" },
      });
      assert.deepEqual(await one.exited, { code: 2, signal: null });
      assert.match(one.errorOutput, /WS_FLEET_HEARTBEAT_MS="soon": must be a whole number/);
      assert.match(one.errorOutput, /WS_FLEET_DLQ_URL="ftp:\/\/nowhere\/": must be an http or https URL/);
      assert.match(one.errorOutput, /WS_FLEET_LEASE_MILLIS: no such setting/);
    });
  }

  it("is refused with code 2 when timings cannot work together", async () => {
    const one = fleet.spawn({ environment: { WS_FLEET_LEASE_MS: "2000" } });
    assert.deepEqual(await one.exited, { code: 2, signal: null });
    assert.match(one.errorOutput, /WS_FLEET_HEARTBEAT_MS, .*: 2 × longest heartbeat/);
  });

  it("takes its name from the task metadata endpoint, where there is one, after a hiccup of it too", async () => {
    const metadata = await startServer((response, _body, n) => {
      if (n === 1) response.writeHead(500).end("not yet");
      else {
        const TaskARN = "arn:aws:ecs:us-east-1:123456789012:task/fleet/0f1e2d3c4b5a69788796a5b4c3d2e1f0";
        response
          .writeHead(200, { "content-type": "application/json" })
          .end(JSON.stringify({ TaskARN, Cluster: "fleet" }));
      }
    });
    try {
      const one = fleet.spawn({ environment: { ECS_CONTAINER_METADATA_URI_V4: `${metadata.url}/v4/abc` } });
      assert.equal((await one.said("worker started")).task, "0f1e2d3c4b5a69788796a5b4c3d2e1f0");
      await fleet.connect("named", "ws://127.0.0.1:9/");
      await until(
        "it is the owner",
        async () => (await fleet.lease("named")).owner === "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
      );
      one.signal("SIGTERM");
      assert.equal((await one.exited).code, 0);
    } finally {
      await metadata.stop();
    }
  });

  it("fails when that endpoint is there and names no task: a made-up name could never be matched with a dead task", async () => {
    const metadata = await startServer((response) => response.writeHead(200).end("{}"));
    try {
      const one = fleet.spawn({ environment: { ECS_CONTAINER_METADATA_URI_V4: metadata.url } });
      assert.equal((await one.exited).code, 1);
      assert.match(one.errorOutput, /gives no task/);
    } finally {
      await metadata.stop();
    }
  });

  it("makes names that no two processes share where there is no such endpoint", async () => {
    const tasks = [];
    for (let n = 0; n < 2; n++) {
      const one = fleet.spawn();
      tasks.push((await one.said("worker started")).task);
      one.signal("SIGTERM");
      assert.equal((await one.exited).code, 0);
    }
    assert.equal(new Set(tasks).size, 2);
  });

  it("does not fail while the store or the queue is away: it stays green, says so, and takes its work up when they come", async () => {
    const [store, queue] = [await Gap.open(fleet.dynamoDb.endpoint), await Gap.open(fleet.sqsEndpoint)];
    const one = fleet.spawn({
      environment: { AWS_ENDPOINT_URL_DYNAMODB: store.endpoint, AWS_ENDPOINT_URL_SQS: queue.endpoint },
    });
    const green = async (): Promise<void> => {
      const { status, body } = await one.health();
      assert.deepEqual([status, body["healthy"]], [200, true]);
    };
    assert.match(String((await one.said("the store does not answer"))["error"]), /ECONNREFUSED/);
    await until("it has tried again", () => one.lines("the store does not answer").length >= 2);
    assert.equal(one.lines("worker started").length, 0, "what nobody can check is not begun");
    await green();

    await store.close();
    await one.said("worker started");
    await until("it has tried again and again", () => one.lines("poll for hints failed").length >= 3);
    assert.match(String(one.lines("poll for hints failed")[0]?.["error"]), /ECONNREFUSED/);
    await green();

    await fleet.connect("patient", "ws://127.0.0.1:9/");
    await queue.close();
    await until("the connection is taken", async () => (await fleet.lease("patient")).owner === one.lines()[0]?.task);
    one.signal("SIGTERM");
    assert.equal((await one.exited).code, 0);
    await Promise.all([store.stop(), queue.stop()]);
  });
});

/** A port where nobody listens, until it is bridged to the server that should have been there. */
class Gap {
  readonly #port: number;
  readonly #target: string;
  readonly #sockets = new Set<Socket>();
  readonly #bridge = createServer((near) => {
    const far = connect(Number(new URL(this.#target).port), "127.0.0.1");
    for (const socket of [near, far]) this.#sockets.add(socket.on("error", () => undefined));
    near.pipe(far).pipe(near);
  });

  private constructor(port: number, target: string) {
    this.#port = port;
    this.#target = target;
  }

  static async open(target: string): Promise<Gap> {
    const probe = createServer();
    await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
    const { port } = probe.address() as AddressInfo;
    await new Promise((resolve) => probe.close(resolve));
    return new Gap(port, target);
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.#bridge.listen(this.#port, "127.0.0.1", resolve));
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#bridge.close(resolve));
  }
}
