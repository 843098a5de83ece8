import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { describe, it } from "node:test";
import { chaosOptions } from "../../../local/chaos/options.ts";

const ROOT = path.resolve(import.meta.dirname, "../../..");
const chaos = (line: string, env: Record<string, string> = {}) => chaosOptions(line.split(" ").filter(Boolean), env);

describe("options of npm run chaos", () => {
  it("are all read", () => {
    const read = chaos("--minutes 2.5 --seed 9 --connections 40 --workers 4 --rate 99.5 --json out.json");
    const { minutes, seconds, seed, connections, workers, rate, json, plan } = read;
    assert.deepEqual(
      { minutes, seconds, seed, connections, workers, rate, json },
      { minutes: 2.5, seconds: 150, seed: 9, connections: 40, workers: 4, rate: 99.5, json: path.resolve("out.json") },
    );
    assert.deepEqual(chaos("--minutes 2.5 --seed 9 --connections 40 --workers 4 --rate 99.5").plan, plan);
  });

  it("watch sockets closely, unless the user says otherwise", () => {
    assert.equal(chaos("").timings.idleTimeoutMs, 9_000);
    assert.equal(chaos("", { WS_FLEET_IDLE_TIMEOUT_MS: "12000" }).timings.idleTimeoutMs, 12_000);
    assert.equal(chaos("", { WS_FLEET_IDLE_TIMEOUT_MS: "12000" }).tuning["WS_FLEET_IDLE_TIMEOUT_MS"], "12000");
  });

  const wrong: [line: string, message: RegExp, env?: Record<string, string>][] = [
    ["--minuets 5", /unknown option '--minuets'/],
    ["5", /too many arguments/],
    ["--minutes 0.2", /--minutes.*number from 0.5 to 120/],
    ["--minutes ten", /--minutes.*'ten'.*number/],
    ["--minutes 0.5 --connections 500", /--minutes: must leave time for faults.*0.5.*500 connections/],
    ["--seed -1", /--seed.*whole number from 0/],
    ["--seed", /--seed <n>.*missing/],
    ["--connections 0", /--connections.*whole number from 1/],
    ["--workers 1", /--workers.*whole number from 2 to 16/],
    ["--rate 0", /--rate.*number from 0.1/],
    ["--json /nowhere/at/all.json", /--json: .*must be writable/],
    [
      "--connections 1500 --workers 2",
      /--connections: the workers that are left by a fault hold 1000 at most, got 1500/,
    ],
    ["", /AWS_ENDPOINT_URL_SQS: must be unset/, { AWS_ENDPOINT_URL_SQS: "http://127.0.0.1:1" }],
    ["", /WS_FLEET_LEASE_MS/, { WS_FLEET_LEASE_MS: "soon" }],
  ];
  for (const [line, message, env] of wrong) {
    it(`refuse ${line} ${JSON.stringify(env ?? {})}`, () => {
      assert.throws(
        () => chaos(line, env),
        (error: Error) => error.name === "UsageError" && message.test(error.message),
      );
    });
  }

  it("end the program with 2 and name option and rule, and with 0 for help", () => {
    const run = (...args: string[]) =>
      spawnSync(process.execPath, ["local/chaos/main.ts", ...args], { cwd: ROOT, encoding: "utf8", timeout: 60_000 });
    const refused = run("--minutes", "0");
    assert.equal(refused.status, 2, refused.stderr);
    assert.match(refused.stderr, /--minutes <m>.*must be a number from 0.5 to 120/s);
    const help = run("--help");
    assert.equal(help.status, 0);
    for (const option of ["--minutes", "--seed", "--connections", "--workers", "--rate", "--json"]) {
      assert.ok(help.stdout.includes(option), option);
    }
  });
});
