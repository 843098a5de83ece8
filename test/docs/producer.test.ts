import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { onDisk } from "../../docs/generate.ts";
import { SystemClock } from "../../shared/clock.ts";
import { startEmbeddedDynamoDb, type EmbeddedDynamoDb } from "../support/embedded-dynamodb.ts";
import { Counts, makeWriter, row, Told } from "../worker/messages/support.ts";

const ROOT = path.join(import.meta.dirname, "../..");

describe("the code in docs/producer.md", () => {
  let server: EmbeddedDynamoDb;
  let folder: string;
  before(async () => {
    server = await startEmbeddedDynamoDb();
    folder = await mkdtemp(path.join(tmpdir(), "ws-fleet-docs-"));
    for (const name of ["shared", "local", "node_modules", "package.json"]) {
      await symlink(path.join(ROOT, name), path.join(folder, name));
    }
    for (const [, name, code] of onDisk("docs/producer.md").matchAll(/```ts\n\/\/ (\S+)\n([^]*?)```/gu)) {
      await writeFile(path.join(folder, name!), code!);
    }
  });
  after(async () => {
    await server.stop();
    await rm(folder, { recursive: true });
  });

  const run = async (file: string, env: Record<string, string>): Promise<string> => {
    const child = spawn(process.execPath, [file], { cwd: folder, env: { ...process.env, ...env } });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
    const [code] = (await once(child, "close")) as [number | null];
    assert.equal(code, 0, output);
    return output;
  };

  it("starts, stops and deletes a connection", async () => {
    const WS_FLEET_CONNECTIONS_TABLE = await server.createTable("ConnectionsTable");
    assert.equal(await run("producer.ts", { WS_FLEET_CONNECTIONS_TABLE }), "start: held\nstop: held\ndelete: held\n");
  });

  it("reads back what a worker's writer stored: plain, in parts, and without a position", async () => {
    const WS_FLEET_MESSAGES_TABLE = await server.createTable("MessagesTable");
    const writer = makeWriter({
      client: server.client,
      clock: new SystemClock(),
      counts: new Counts(),
      tableName: WS_FLEET_MESSAGES_TABLE,
      random: Math.random,
    });
    const lane = writer.lane(new Told());
    lane.push(row("trades-btc", 7, { payload: "short" }));
    lane.push(row("trades-btc", 10n ** 20n + 1n, { payload: "0123456789".repeat(50_000) }));
    lane.push(row("trades-btc#unpositioned", 1, { payload: "hello" }), { checkpointed: false });
    assert.equal(await lane.flush(), true);
    await writer.stop(AbortSignal.timeout(10_000));
    assert.equal(
      await run("reader.ts", { WS_FLEET_MESSAGES_TABLE }),
      "7: 5 long, 0 parts\n100000000000000000001: 500000 long, 2 parts\nwithout a position: hello\n",
    );
  });
});
