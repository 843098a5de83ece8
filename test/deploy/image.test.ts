import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { WebSocketServer } from "ws";
import { IMAGE_INPUTS, imageInputs, imageTag } from "../../deploy/plugins/image-tag.ts";
import { EXIT } from "../../worker/exit-codes.ts";
import { until } from "../local/stack/until.ts";
import { Fleet } from "../worker/support/fleet.ts";
import { PROJECT_ROOT } from "./support/package.ts";

const read = (file: string): string => readFileSync(path.join(PROJECT_ROOT, file), "utf8");

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), "ws-fleet-image-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

describe("Dockerfile", () => {
  const instructions = read("Dockerfile")
    .split("\n")
    .filter((line) => /^[A-Z]+ /.test(line));
  const final = instructions.slice(instructions.findLastIndex((line) => line.startsWith("FROM ")));
  const only = (name: string): string[] => final.filter((line) => line.startsWith(`${name} `));

  it("has a last stage of copies alone, without root and with node in exec form", () => {
    assert.deepEqual(only("RUN"), []);
    assert.deepEqual(only("COPY"), ["COPY --from=build --chown=root:root /build/dist/*.mjs ./"]);
    assert.deepEqual(only("USER"), ["USER 1000:1000"]);
    assert.deepEqual(only("ENTRYPOINT"), ['ENTRYPOINT ["node", "/app/supervisor.mjs"]']);
    assert.ok(final.indexOf("USER 1000:1000") < final.findIndex((line) => line.startsWith("ENTRYPOINT")));
  });

  it("stands on the Node that the tests run on, and compose with it", () => {
    const { devDependencies } = JSON.parse(read("package.json")) as { devDependencies: { node: string } };
    assert.ok(instructions.includes(`ARG NODE_VERSION=${devDependencies.node}`));
    assert.ok(read("compose.yaml").includes(`image: node:${devDependencies.node}-bookworm-slim`));
  });

  it("copies what the tag is made of, and .dockerignore lets nothing else in", () => {
    const copied = instructions
      .filter((line) => line.startsWith("COPY ") && !line.includes("--from"))
      .flatMap((line) => line.split(" ").slice(1, -1));
    const inputs = IMAGE_INPUTS.filter((input) => input !== "Dockerfile" && input !== ".dockerignore");
    assert.deepEqual(copied.sort(), inputs.map((input) => input.split("/")[0]).sort());
    const letIn = read(".dockerignore")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    assert.deepEqual(letIn, ["*", ...inputs.map((input) => `!${input}`)]);
  });

  describe("builds from that a worker", () => {
    let build: string;
    let app: string;
    before(() => {
      build = mkdtempSync(path.join(tmpdir(), "ws-fleet-image-"));
      for (const file of imageInputs(PROJECT_ROOT)) {
        mkdirSync(path.dirname(path.join(build, file)), { recursive: true });
        cpSync(path.join(PROJECT_ROOT, file), path.join(build, file));
      }
      symlinkSync(path.join(PROJECT_ROOT, "node_modules"), path.join(build, "node_modules"));
      const command = instructions.find((line) => line === "RUN node worker/build.ts dist");
      assert.ok(command);
      const built = spawnSync(process.execPath, ["worker/build.ts", "dist"], { cwd: build, encoding: "utf8" });
      assert.equal(built.status, 0, built.stderr);
      app = container(globSync(path.join(build, "dist/*.mjs")));
    });
    after(() => {
      for (const folder of [build, app]) rmSync(folder, { recursive: true, force: true });
    });

    it("of two files, which alone start and refuse settings that are missing", () => {
      assert.deepEqual(readdirSync(app).sort(), ["node", "supervisor.mjs", "worker.mjs"]);
      const started = spawnSync(path.join(app, "node"), [path.join(app, "supervisor.mjs")], {
        cwd: app,
        env: { WS_FLEET_LEASE_MS: "1" },
        encoding: "utf8",
      });
      assert.equal(started.status, EXIT.configuration, started.stderr);
      assert.match(started.stderr, /WS_FLEET_CONNECTIONS_TABLE: must be set/);
    });

    it("that holds connections, stores and drains where it may write nothing and is not root", async (t) => {
      const fleet = await Fleet.start();
      t.after(() => fleet.stop());
      const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
      await once(server, "listening");
      t.after(() => {
        for (const peer of server.clients) peer.terminate();
        server.close();
      });
      server.on("connection", (peer) => peer.on("error", () => undefined).send("a line"));

      const { PATH: _, ...environment } = fleet.environment();
      const worker = spawn(path.join(app, "node"), [path.join(app, "supervisor.mjs")], {
        cwd: app,
        env: environment,
        stdio: ["ignore", "pipe", "pipe"],
        ...(process.getuid?.() === 0 ? { uid: 1000, gid: 1000 } : {}),
      });
      let output = "";
      for (const stream of [worker.stdout, worker.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => (output += text));
      }
      const ended = once(worker, "close") as Promise<[number | null]>;
      t.after(() => worker.kill("SIGKILL"));
      try {
        await fleet.connect("contained", `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`);
        await until("a message is stored", async () => (await fleet.stored("contained")).length === 1, 60_000);
      } catch (error) {
        throw new Error(output, { cause: error });
      }
      worker.kill("SIGTERM");
      assert.equal((await ended)[0], 0, output);
      assert.equal((await fleet.lease("contained")).owner, undefined);
      assert.deepEqual(readdirSync(app).sort(), ["node", "supervisor.mjs", "worker.mjs"]);
    });
  });
});

/** A folder as the image's: node and the given files, which nobody may write and everybody may read. */
function container(files: readonly string[]): string {
  const folder = mkdtempSync(path.join(tmpdir(), "ws-fleet-image-"));
  for (const file of files) {
    cpSync(file, path.join(folder, path.basename(file)));
    chmodSync(path.join(folder, path.basename(file)), 0o444);
  }
  // Where the tests' own node lies, another user may not be able to go.
  cpSync(realpathSync(process.execPath), path.join(folder, "node"));
  chmodSync(path.join(folder, "node"), 0o555);
  chmodSync(folder, 0o555);
  return folder;
}

describe("the image's tag", () => {
  it("is the same for the same content, and only then", (t) => {
    const folder = temporaryFolder(t);
    const write = (file: string, text: string): void => {
      mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
      writeFileSync(path.join(folder, file), text);
    };
    for (const file of ["Dockerfile", "package.json", "worker/main.ts", "shared/clock.ts"]) write(file, file);
    const first = imageTag(folder);
    assert.match(first, /^sha-[0-9a-f]{24}$/);
    write("functions/audit.ts", "of no interest");
    write("worker/notes.md", "of no interest");
    assert.equal(imageTag(folder), first);
    write("worker/main.ts", "changed");
    const second = imageTag(folder);
    assert.notEqual(second, first);
    write("worker/main.ts", "worker/main.ts");
    assert.equal(imageTag(folder), first);
    write("worker/other.ts", "");
    assert.notEqual(imageTag(folder), first);
  });
});
