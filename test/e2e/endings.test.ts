import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, it, type TestContext } from "node:test";
import { createRunFolder } from "../../local/run/folder.ts";
import { until } from "../local/stack/until.ts";
import { startCommand, type RunningCommand } from "./command.ts";

const TIMEOUT = { timeout: 180_000 };
const START_LIMIT_MS = 60_000;
const DEMO = "--connections 6 --workers 1 --seconds 60 --rate 30".split(" ");

describe("a run that ends otherwise than planned", () => {
  const start = async (t: TestContext, args = DEMO): Promise<RunningCommand> => {
    const command = await startCommand("demo.ts", args);
    t.after(() => command.cleanUp());
    return command;
  };
  const speaking = (command: RunningCommand): Promise<unknown> =>
    until("the speech", () => command.output().includes("speaking"), START_LIMIT_MS);
  const nothingRuns = (command: RunningCommand): Promise<unknown> =>
    until("nothing to be left running", () => command.alive().length === 0, 30_000);
  const runFolders = ({ temporary }: RunningCommand): string[] =>
    readdirSync(temporary).filter((name) => name.startsWith("ws-fleet-run-"));

  it(
    "ends cleanly when nobody reads its output any more: no stack, no folder, the code of a broken pipe",
    TIMEOUT,
    async (t) => {
      const command = await start(t);
      await speaking(command);
      command.process.stdout!.destroy();
      assert.equal(await command.exitCode, 141, command.output());
      assert.doesNotMatch(command.output(), /EPIPE|^\s+at /mu);
      await nothingRuns(command);
      assert.deepEqual(readdirSync(command.temporary), []);
    },
  );

  it("ends as by Ctrl-C when its terminal is closed", TIMEOUT, async (t) => {
    const command = await start(t);
    await speaking(command);
    command.process.kill("SIGHUP");
    assert.equal(await command.exitCode, 130, command.output());
    await nothingRuns(command);
    assert.deepEqual(readdirSync(command.temporary), []);
  });

  it(
    "is ended by two signals of one key press as by one, and at once by a later one, without a folder",
    TIMEOUT,
    async (t) => {
      const command = await startCommand("start.ts", "--connections 6 --workers 1 --rate 30".split(" "));
      t.after(() => command.cleanUp());
      await until("the fleet to run", () => command.output().includes("running, Ctrl-C ends it"), START_LIMIT_MS);
      // A supervisor that stands still cannot drain, so that the second press comes in time.
      const task = supervisorOf(command);
      process.kill(task, "SIGSTOP");
      command.process.kill("SIGINT");
      command.process.kill("SIGINT");
      await until("the drain", () => command.output().includes("draining"), 20_000);
      command.process.kill("SIGINT");
      assert.equal(await command.exitCode, 130, command.output());
      await nothingRuns(command);
      const left = runFolders(command);
      if (left.length > 0) {
        // What children wrote while it was removed: the next run's business.
        const next = await createRunFolder(command.temporary);
        await next.remove();
      }
      assert.deepEqual(runFolders(command), []);
    },
  );

  it("leaves a folder when it is killed outright, which the next run removes", TIMEOUT, async (t) => {
    const command = await start(t);
    await speaking(command);
    const [left] = runFolders(command);
    assert.ok(left !== undefined);
    const during = await createRunFolder(command.temporary);
    await during.remove();
    assert.deepEqual(runFolders(command), [left], "it runs");
    command.process.kill("SIGKILL");
    await command.exitCode;
    await nothingRuns(command);
    const next = await createRunFolder(command.temporary);
    await next.remove();
    assert.deepEqual(readdirSync(command.temporary), []);
  });

  const parts: [part: string, victim: (command: RunningCommand) => number, message: RegExp][] = [
    ["DynamoDB", (command) => processNamed(command, "dynoxide"), /^the embedded DynamoDB ended \(signal SIGKILL\)/mu],
    ["upstream", (command) => processNamed(command, "upstream/main.ts"), /^the upstream ended \(signal SIGKILL\)/mu],
    ["task agent", (command) => processNamed(command, "agent-main.ts"), /^the task agent ended \(signal SIGKILL\)/mu],
  ];
  for (const [part, victim, message] of parts) {
    it(`says at once that its ${part} has ended, ends everything and keeps the logs`, TIMEOUT, async (t) => {
      const command = await start(t);
      await speaking(command);
      process.kill(victim(command), "SIGKILL");
      const diedAtMs = performance.now();
      assert.equal(await command.exitCode, 1, command.output());
      assert.ok(performance.now() - diedAtMs < 30_000, "long before the speech is over");
      assert.match(command.output(), message);
      await nothingRuns(command);
      const kept = /logs and journals are kept in (?<folder>\S+)/u.exec(command.output())?.groups?.["folder"];
      assert.ok(kept !== undefined && existsSync(path.join(kept, "journals")));
      assert.match(readFileSync(path.join(kept, "logs", "runner.log"), "utf8"), /a part of the run is lost/u);
    });
  }

  it("writes its report as JSON alone to the standard output when asked to", TIMEOUT, async (t) => {
    const command = await start(t, [..."--connections 3 --workers 1 --seconds 5 --rate 15 --json -".split(" ")]);
    let stdout = "";
    command.process.stdout!.on("data", (text: string) => (stdout += text));
    assert.equal(await command.exitCode, 0, command.output());
    assert.equal((JSON.parse(stdout) as { ok: boolean }).ok, true);
    assert.match(command.output(), /All is well/, "for people, on the error output");
    assert.equal(existsSync("-"), false);
  });
});

/** The process of this run whose command line holds the name. */
function processNamed(command: RunningCommand, name: string): number {
  const found = command.alive().filter((pid) => commandLine(pid).some((part) => part.endsWith(name)));
  assert.equal(found.length, 1, name);
  return found[0]!;
}

function supervisorOf(command: RunningCommand): number {
  return processNamed(command, "supervisor.mjs");
}

function commandLine(pid: number): string[] {
  return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
}
