import { DeleteItemCommand, ScanCommand } from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import type { RunReport } from "../../local/report/report.ts";
import { startDynamo } from "../local/helpers/dynoxide.ts";
import { until } from "../local/stack/until.ts";
import { startCommand, type RunningCommand } from "./command.ts";

const TIMEOUT = { timeout: 240_000 };
const LEFT_LIMIT_MS = 20_000;

describe("npm run demo", () => {
  let folder: string;
  let count = 0;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "ws-fleet-e2e-json-"));
  });
  after(() => rm(folder, { recursive: true }));

  const start = async (line: string, env: Record<string, string> = {}) => {
    const json = path.join(folder, `${(count += 1)}.json`);
    const command = await startCommand("demo.ts", [...line.split(" "), "--json", json], env);
    return { command, report: async () => JSON.parse(await readFile(json, "utf8")) as RunReport };
  };
  const nothingLeft = (command: RunningCommand): Promise<unknown> =>
    until("nothing to be left running", () => command.alive().length === 0, LEFT_LIMIT_MS);

  it(
    "keeps every message and every owner through a crash and a kill, and leaves nothing running",
    TIMEOUT,
    async (t) => {
      const { command, report } = await start(
        "--connections 20 --workers 2 --seconds 25 --rate 100 --crash 1 --kill 1 --event-delay 2 --seed 7",
      );
      t.after(() => command.cleanUp());
      await until("the fleet to run", () => command.alive().length > 5, 60_000);
      assert.equal(await command.exitCode, 0, command.output());
      await nothingLeft(command);
      assert.deepEqual(readdirSync(command.temporary), [], "the folder of a good run is removed");
      assert.doesNotMatch(command.output(), /\x1b/u, "no control characters without a terminal");

      const figures = await report();
      const { messages, ownership, recoveryMs, workerProcesses } = figures;
      assert.deepEqual([figures.connections, figures.workers, figures.seconds], [20, 2, 25]);
      assert.equal(messages.sent, 2_500);
      assert.equal(messages.stored + messages.gapMessages, messages.sent);
      assert.deepEqual([messages.missing, messages.duplicated, messages.differing], [0, 0, 0]);
      assert.equal(typeof messages.gaps, "number");
      assert.deepEqual([ownership.doublyOwned, ownership.unowned, ownership.lateActs], [0, 0, 0]);
      assert.equal(typeof ownership.fenced, "number");
      assert.deepEqual(Object.keys(recoveryMs).sort(), ["crash", "kill", "start"]);
      assert.equal(recoveryMs["start"]?.n, 20);
      for (const kind of ["crash", "kill"]) {
        const { n, p50, p99, max } = recoveryMs[kind] ?? {};
        assert.ok(n !== undefined && n > 0, kind);
        assert.ok(p50! > 0 && p99! >= p50! && max! >= p99!, kind);
      }
      assert.ok(recoveryMs["kill"]!.p50! >= 2_000, "nobody knows of a kill before the event");
      assert.ok(figures.perConnectionMinute.dynamodbRequests > 0);
      assert.ok(figures.perConnectionMinute.writeUnits > 0);
      assert.ok(figures.perConnectionMinute.readUnits >= 0);
      assert.equal(workerProcesses.length, 2);
      assert.equal(workerProcesses.reduce((sum, { restarts }) => sum + restarts, 0), 2); // prettier-ignore
      for (const { rssMb, cpuPercent } of workerProcesses) assert.ok(rssMb > 10 && cpuPercent > 0);
    },
  );

  it("finds a row that somebody took away, says so and keeps the logs", TIMEOUT, async (t) => {
    const store = await startDynamo();
    t.after(() => store.stop());
    const { dynamodb } = store;
    const { endpoint } = dynamodb.config;
    assert.ok(endpoint !== undefined);
    const { protocol, hostname, port } = await endpoint();
    const { command, report } = await start("--connections 4 --workers 1 --seconds 8 --rate 40", {
      AWS_ENDPOINT_URL_DYNAMODB: `${protocol}//${hostname}:${port}`,
    });
    t.after(() => command.cleanUp());
    const TableName = "ws-fleet-local-messages";
    const key = await until(
      "rows of a replaying feed",
      async () => {
        const { Items } = await dynamodb.send(new ScanCommand({ TableName })).catch(() => ({ Items: undefined }));
        return Items?.find(({ payload }) => payload?.S?.startsWith('{"seq"'));
      },
      60_000,
    );
    await dynamodb.send(
      new DeleteItemCommand({ TableName, Key: { connection_id: key["connection_id"]!, seq: key["seq"]! } }),
    );
    assert.equal(await command.exitCode, 1, command.output());
    await nothingLeft(command);
    const { ok, problems, messages, examples } = await report();
    assert.deepEqual([ok, problems, messages.missing], [false, ["1 message is missing"], 1]);
    assert.match(examples.join(), new RegExp(`position ${key["seq"]!.N!} is missing`, "u"));
    const kept = /logs and journals are kept in (?<folder>\S+)/u.exec(command.output())?.groups?.["folder"];
    assert.ok(kept !== undefined && existsSync(path.join(kept, "journals")));
  });

  it("ends cleanly when it is interrupted", TIMEOUT, async (t) => {
    const { command } = await start("--connections 10 --workers 2 --seconds 60 --rate 50");
    t.after(() => command.cleanUp());
    await until("the speech", () => command.output().includes("speaking"), 60_000);
    command.process.kill("SIGINT");
    assert.equal(await command.exitCode, 130, command.output());
    await nothingLeft(command);
    assert.deepEqual(readdirSync(command.temporary), []);
  });
});
