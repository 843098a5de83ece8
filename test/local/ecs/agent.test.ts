import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { after, afterEach, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { TaskEnded } from "../../../local/ecs/agent-protocol.ts";
import { startAgent, type TaskAgent } from "../../../local/ecs/agent.ts";
import { childrenOf, isDead } from "../../../local/ecs/processes.ts";
import { silentLogger } from "../../../shared/logger.ts";
import { until } from "../stack/until.ts";

const entry = path.join(import.meta.dirname, "fixture-task.ts");

describe("the task agent", () => {
  let folder: string;
  let agent: TaskAgent;
  let ended: TaskEnded[];
  let count = 0;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "ws-fleet-agent-"));
  });
  after(() => rm(folder, { recursive: true }));
  afterEach(() => agent.stop());

  /** A task whose child beats. */
  const launch = async () => {
    ended = [];
    agent = await startAgent({ env: {}, logger: silentLogger });
    agent.onEnded((one) => ended.push(one));
    const taskId = `t${(count += 1)}`;
    const [beats, logFile] = [path.join(folder, `${taskId}.beats`), path.join(folder, `${taskId}.log`)];
    const { pid } = await agent.launch({ taskId, entry, env: { BEATS: beats }, logFile });
    await until("the child to beat", () => existsSync(beats));
    const [worker] = childrenOf(pid);
    assert.ok(worker !== undefined);
    return { taskId, pid, worker, beats, logFile };
  };

  it("keeps what a task says in its file", async () => {
    const { logFile } = await launch();
    await until("the words", () => readFileSync(logFile, "utf8") === "the task's own words\n");
  });

  it("kills the worker alone: its supervisor lives to see it", async () => {
    const { taskId, worker } = await launch();
    const { atMs, deadAtMs } = await agent.signal({ taskId, target: "worker", signal: "SIGKILL" });
    assert.ok(isDead(worker));
    assert.ok(deadAtMs !== undefined && deadAtMs >= atMs);
    await until("the supervisor to end by itself", () => ended.length === 1);
    assert.deepEqual([ended[0]?.taskId, ended[0]?.code, ended[0]?.signal], [taskId, 7, null]);
  });

  it("kills a whole task at once, also a frozen one", async () => {
    const { taskId, pid, worker } = await launch();
    await agent.signal({ taskId, target: "task", signal: "SIGSTOP" });
    await agent.signal({ taskId, target: "task", signal: "SIGKILL" });
    assert.deepEqual([isDead(pid), isDead(worker)], [true, true]);
    await until("the end to be told", () => ended.length === 1);
    assert.deepEqual([ended[0]?.code, ended[0]?.signal], [null, "SIGKILL"]);
  });

  it("terminates the supervisor, and nothing outlives it", async () => {
    const { taskId, worker } = await launch();
    await agent.signal({ taskId, target: "supervisor", signal: "SIGTERM" });
    await until("the task to end", () => ended.length === 1);
    assert.equal(ended[0]?.code, 0);
    await until("its child to be dead", () => isDead(worker));
  });

  it("freezes a task and wakes it again", async () => {
    const { taskId, beats } = await launch();
    const size = (): number => statSync(beats).size;
    await agent.signal({ taskId, target: "task", signal: "SIGSTOP" });
    const frozen = size();
    await delay(100);
    assert.equal(size(), frozen, "twenty beats were due");
    await agent.signal({ taskId, target: "task", signal: "SIGCONT" });
    await until("the child to beat again", () => size() > frozen);
    assert.deepEqual(ended, []);
  });

  it("says what it cannot do", async () => {
    await launch();
    await assert.rejects(agent.signal({ taskId: "t0", target: "task", signal: "SIGKILL" }), /task t0 does not run/);
    await assert.rejects(
      agent.launch({ taskId: "t0", entry, env: {}, logFile: path.join(folder, "no", "where") }),
      /ENOENT/,
    );
    await agent.stop();
    await assert.rejects(agent.signal({ taskId: "t0", target: "task", signal: "SIGKILL" }), /agent has ended/);
  });

  it("takes the tasks with it when it stops", async () => {
    const { pid, worker } = await launch();
    await agent.stop();
    assert.deepEqual([isDead(pid), isDead(worker)], [true, true]);
  });

  it("takes the tasks with it when its runner is killed outright", async () => {
    await launch();
    const files = [path.join(folder, "killed.beats"), path.join(folder, "killed.log")];
    const runner = spawn(process.execPath, [path.join(import.meta.dirname, "agent-runner.ts"), ...files], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await once(createInterface({ input: runner.stdout }), "line")) as [string];
    const pids = JSON.parse(line) as number[];
    assert.equal(pids.length, 2, "agent and supervisor");
    await until("the task's child to beat", () => existsSync(files[0] ?? ""));
    const all = [...pids, ...childrenOf(pids[1] ?? 0)];
    assert.equal(all.length, 3);
    runner.kill("SIGKILL");
    await until("all of them to be dead", () => all.every(isDead));
  });
});
