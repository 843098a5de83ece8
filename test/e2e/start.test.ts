import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { describe, it } from "node:test";
import { until } from "../local/stack/until.ts";
import { startCommand, type RunningCommand } from "./command.ts";

const TIMEOUT = { timeout: 180_000 };
const LINE = "--connections 12 --workers 2 --rate 60".split(" ");

describe("npm start", () => {
  const running = async (): Promise<RunningCommand> => {
    const command = await startCommand("start.ts", LINE);
    await until("all connections to be open", () => command.output().includes("12/12 open"), 60_000);
    return command;
  };

  it("shows the fleet in plain lines without a terminal, and drains it on Ctrl-C", TIMEOUT, async (t) => {
    const command = await running();
    t.after(() => command.cleanUp());
    command.process.kill("SIGINT");
    assert.equal(await command.exitCode, 0, command.output());
    assert.match(command.output(), /running, Ctrl-C ends it: 12\/12 open \(\d+\+\d+\), 0 orphans, .* 0 lost of/u);
    assert.match(command.output(), /drained; [\d,]+ messages stored, 0 lost of [\d,]+ looked up/u);
    await until("nothing to be left running", () => command.alive().length === 0);
    assert.deepEqual(readdirSync(command.temporary), []);
  });

  it("leaves nothing running when it is killed outright", TIMEOUT, async (t) => {
    const command = await running();
    t.after(() => command.cleanUp());
    const before = command.alive();
    // Runner, upstream, two stores with a wrapper, functions, agent, two tasks of two processes.
    assert.ok(before.length >= 9, `${before.length} processes run`);
    command.process.kill("SIGKILL");
    await until("nothing to be left running", () => command.alive().length === 0, 30_000);
  });
});
