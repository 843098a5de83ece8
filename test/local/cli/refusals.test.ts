import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, it } from "node:test";

const ROOT = path.resolve(import.meta.dirname, "../../..");
const ARGUMENTS = ["local/demo.ts", "--connections", "2", "--workers", "1", "--seconds", "5", "--rate", "4"];

describe("npm run demo with an environment it cannot work in", () => {
  let server: Server;
  let folder: string;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "ws-fleet-refusals-"));
    server = createServer((_request, response) => response.end("<html>"));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  after(async () => {
    server.close();
    server.closeAllConnections();
    await rm(folder, { recursive: true });
  });

  const refused = async (variable: string, value: string): Promise<{ code: number | null; said: string }> => {
    const child = spawn(process.execPath, ARGUMENTS, {
      cwd: ROOT,
      env: { ...process.env, TMPDIR: folder, [variable]: value },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const [code] = (await once(child, "close")) as [number | null];
    return { code, said };
  };

  for (const variable of ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS"]) {
    it(`names ${variable} and the rule, ends with 2 and leaves no folder`, async () => {
      const elsewhere = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      for (const [value, rule] of [
        ["not-a-url", /must be a URL of http or https/],
        ["http://127.0.0.1:1", /must be an endpoint of .*ECONNREFUSED/],
        [elsewhere, /must be an endpoint of/],
      ] as const) {
        const { code, said } = await refused(variable, value);
        assert.equal(code, 2, said);
        assert.match(said, new RegExp(variable));
        assert.match(said, rule);
        assert.doesNotMatch(said, /\$response/, "the SDK's advice is no help at a command line");
      }
      assert.deepEqual(
        (await readdir(folder)).filter((name) => name.startsWith("ws-fleet")),
        [],
      );
    });
  }

  it("names a setting of the workers' own before anything starts", async () => {
    const { code, said } = await refused("WS_FLEET_LOG_LEVEL", "loud");
    assert.equal(code, 2);
    assert.match(said, /WS_FLEET_LOG_LEVEL="loud": must be one of trace/);
    assert.deepEqual(
      (await readdir(folder)).filter((name) => name.startsWith("ws-fleet")),
      [],
    );
  });
});
