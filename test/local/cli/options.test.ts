import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, it } from "node:test";
import { demoCommand, demoOptions } from "../../../local/cli/demo-options.ts";
import { startOptions } from "../../../local/cli/start-options.ts";

const demo = (line: string, env: Record<string, string> = {}) => demoOptions(line.split(" ").filter(Boolean), env);
const refused = (act: () => unknown, message: RegExp): void =>
  assert.throws(act, (error: Error) => error.name === "UsageError" && message.test(error.message));

describe("options of the demo", () => {
  it("are all read", () => {
    const options = demo(
      "--connections 300 --workers 4 --seconds 400 --rate 1500.5 --crash 1 --kill 2 --term 3 --freeze 1 " +
        "--no-task-events --no-stream --no-queue --event-delay 2.5 --seed 9 --json out.json",
    );
    const { connections, workers, seconds, rate, faults, taskEvents, stream, queue, eventDelayMs, seed, json } =
      options;
    assert.deepEqual(
      { connections, workers, seconds, rate, faults, taskEvents, stream, queue, eventDelayMs, seed, json },
      {
        connections: 300,
        workers: 4,
        seconds: 400,
        rate: 1500.5,
        faults: { crash: 1, kill: 2, term: 3, freeze: 1 },
        taskEvents: false,
        stream: false,
        queue: false,
        eventDelayMs: 2500,
        seed: 9,
        json: path.resolve("out.json"),
      },
    );
  });

  it("have defaults that are a quiet run", () => {
    const { faults, eventDelayMs, taskEvents, stream, queue, json } = demo("");
    assert.deepEqual(faults, { crash: 0, kill: 0, term: 0, freeze: 0 });
    assert.deepEqual([eventDelayMs, taskEvents, stream, queue, json], [10_000, true, true, true, undefined]);
  });

  it("accept the run that the README shows", () => {
    const { faults } = demo(
      "--connections 300 --workers 4 --seconds 120 --rate 1500 --crash 1 --kill 1 --term 1 --json out.json",
    );
    assert.deepEqual(faults, { crash: 1, kill: 1, term: 1, freeze: 0 });
  });

  const wrong: [line: string, message: RegExp][] = [
    ["--conections 5", /unknown option '--conections'/],
    ["5", /too many arguments/],
    ["--seed", /--seed <n>.*missing/],
    ["--connections many", /--connections.*'many'.*whole number from 1 to 5000/],
    ["--connections 0", /--connections.*whole number from 1/],
    ["--connections 1.5", /--connections.*whole number/],
    ["--workers 17", /--workers.*from 1 to 16/],
    ["--seconds 4", /--seconds.*from 5/],
    ["--rate 0", /--rate.*number from 0.1/],
    ["--rate -5", /--rate.*number from 0.1/],
    ["--rate 1e3", /--rate.*number/],
    ["--crash -1", /--crash.*whole number from 0/],
    ["--event-delay 121", /--event-delay.*from 0 to 120/],
    ["--crash 1 --freeze 1 --workers 1", /--crash, --freeze: need --workers of at least 2/],
    ["--kill 1 --seconds 10", /--kill: need --seconds of at least \d+.*got 10/],
    ["--connections 2001 --workers 2", /--connections: the workers hold 2000 at most.*got 2001/],
    [
      "--connections 1500 --workers 2 --crash 1",
      /--connections: the workers that are left by a fault hold 1000 at most/,
    ],
    ["--json /", /--json: must name a file, and \/ is a folder/],
    ["--json /proc/out.json", /--json: \/proc\/out.json must be writable/],
    ["--json=", /--json: must name a file/],
    ["--json /no/such/folder/out.json", /--json: \/no\/such\/folder\/out.json must be writable: ENOENT/],
  ];
  for (const [line, message] of wrong) {
    it(`refuse ${line}`, () => refused(() => demo(line), message));
  }

  it("leave nothing where a report can be written, and take - for the standard output", () => {
    const folder = mkdtempSync(path.join(tmpdir(), "ws-fleet-options-"));
    try {
      const file = path.join(folder, "out.json");
      assert.equal(demo(`--json ${file}`).json, file);
      assert.deepEqual(readdirSync(folder), []);
      writeFileSync(file, "before");
      demo(`--json ${file}`);
      assert.equal(readFileSync(file, "utf8"), "before");
    } finally {
      rmSync(folder, { recursive: true });
    }
    assert.equal(demo("--json -").json, "-");
  });

  it("need more time for faults that are noticed later", () => {
    demo("--kill 1 --seconds 20 --event-delay 2");
    refused(() => demo("--kill 1 --seconds 19"), /--seconds/);
    refused(() => demo("--kill 1 --seconds 20 --event-delay 2 --no-task-events"), /--seconds/);
    refused(() => demo("--crash 1 --seconds 20 --no-queue"), /--seconds/);
  });

  it("take settings of the fleet from the environment, and refuse those that cannot work", () => {
    const tuned = demo("--freeze 1 --seconds 45", { WS_FLEET_LEASE_MS: "19000", HOME: "/root" });
    assert.deepEqual(tuned.tuning, { WS_FLEET_LEASE_MS: "19000" });
    assert.equal(tuned.recovery.leaseMs, 19_000);
    refused(() => demo("", { WS_FLEET_LEASE_MS: "5" }), /WS_FLEET_LEASE_MS/);
    refused(() => demo("", { WS_FLEET_LEASE: "20000" }), /WS_FLEET_LEASE: no such setting/);
    refused(() => demo("", { WS_FLEET_JOURNAL_FILE: "x" }), /WS_FLEET_JOURNAL_FILE: is set by the local runner/);
    refused(
      () => demo("--no-queue", { AWS_ENDPOINT_URL_SQS: "http://127.0.0.1:1" }),
      /--no-queue.*AWS_ENDPOINT_URL_SQS/,
    );
  });

  it("are all told by the help", () => {
    const help = demoCommand().helpInformation();
    for (const { long } of demoCommand().options) assert.ok(help.includes(long ?? "?"), long ?? "");
    for (const option of ["--crash", "--no-task-events", "--event-delay", "--json"]) assert.ok(help.includes(option));
  });
});

describe("options of the start", () => {
  it("are read, checked, and have the documented defaults", () => {
    const { connections, workers, rate } = startOptions([], {});
    assert.deepEqual([connections, workers], [200, 3]);
    assert.ok(rate > 0);
    assert.equal(startOptions(["--workers", "2"], {}).workers, 2);
    refused(() => startOptions(["--crash", "1"], {}), /unknown option '--crash'/);
    refused(() => startOptions(["--connections", "1001", "--workers", "1"], {}), /--connections.*1000 at most/);
  });
});

describe("the commands", () => {
  const run = (file: string, ...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [path.resolve("local", file), ...args], {
      encoding: "utf8",
      timeout: 60_000,
    });
    return { status, stdout, stderr };
  };

  it("end with 2 for bad usage, naming the option and the rule", () => {
    for (const file of ["demo.ts", "start.ts"]) {
      const { status, stdout, stderr } = run(file, "--connections", "none");
      assert.equal(status, 2);
      assert.equal(stdout, "");
      assert.match(stderr, /--connections.*must be a whole number/);
    }
  });

  it("show their help and end with 0", () => {
    const { status, stdout, stderr } = run("demo.ts", "--help");
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /--freeze <n>/);
  });
});
