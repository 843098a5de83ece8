import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { notProvenDead, parseTaskStateChange } from "../../../functions/core/task-state-change.ts";
import type { Launch, Signal, Signalled, TaskEnded } from "../../../local/ecs/agent-protocol.ts";
import { EcsService } from "../../../local/ecs/service.ts";
import { silentLogger } from "../../../shared/logger.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const DELAY_MS = 10_000;
const REPLACE_MS = 3_000;

/** Takes the place of the processes: tasks run until the test ends them. */
class ScriptedAgent {
  readonly launched: Launch[] = [];
  readonly signals: Signal[] = [];
  #listener: (ended: TaskEnded) => void = () => undefined;

  launch(launch: Launch): Promise<{ pid: number }> {
    this.launched.push(launch);
    return Promise.resolve({ pid: this.launched.length });
  }

  signal(signal: Signal): Promise<Signalled> {
    this.signals.push(signal);
    return Promise.resolve({ atMs: 0 });
  }

  onEnded(listener: (ended: TaskEnded) => void): void {
    this.#listener = listener;
  }

  end(taskId: string, code: number | null, signal: NodeJS.Signals | null = null): void {
    this.#listener({ taskId, code, signal, atMs: 0 });
  }
}

async function service(tasks = 2) {
  const clock = new VirtualClock();
  const agent = new ScriptedAgent();
  const events: { atMs: number; event: unknown }[] = [];
  const ecs = new EcsService({
    agent,
    template: {
      region: "us-east-1",
      clusterName: "fleet",
      clusterArn: "arn:aws:ecs:us-east-1:000000000000:cluster/fleet",
      serviceName: "fleet",
      family: "fleet-worker",
      revision: 1,
    },
    clock,
    logger: silentLogger,
    entry: "/supervisor.mjs",
    envOf: (taskId) => ({ TASK: taskId }),
    logFileOf: (taskId) => `/logs/${taskId}`,
    putEvent: (event) => events.push({ atMs: clock.monotonicMs(), event }),
    eventDelayMs: DELAY_MS,
    replaceAfterMs: REPLACE_MS,
    stopTimeoutMs: 120_000,
  });
  await ecs.scale(tasks);
  const ids = ecs.running.map(({ taskId }) => taskId);
  /** The events of one task: when, what, and whether they prove its death. */
  const told = (taskId: string) =>
    events.flatMap(({ atMs, event }) => {
      const detail = parseTaskStateChange(event);
      if (!detail.taskArn.endsWith(taskId)) return [];
      return [[atMs, detail.desiredStatus, detail.lastStatus, notProvenDead(detail) === undefined]];
    });
  const versions = (taskId: string) =>
    events
      .map(({ event }) => (event as { detail: { taskArn: string; version: number } }).detail)
      .filter(({ taskArn }) => taskArn.endsWith(taskId))
      .map(({ version }) => version);
  return { clock, agent, ecs, ids, told, versions };
}

describe("the ECS service", () => {
  it("starts its tasks, each with its own environment and log", async () => {
    const { agent, ecs, ids, told } = await service(2);
    assert.equal(new Set(ids).size, 2);
    assert.deepEqual(
      agent.launched.map(({ entry, env, logFile, taskId }) => [entry, env["TASK"], logFile, taskId]),
      ids.map((id) => ["/supervisor.mjs", id, `/logs/${id}`, id]),
    );
    assert.deepEqual(
      ecs.running.map(({ slot, lastStatus }) => [slot, lastStatus]),
      [
        [0, "RUNNING"],
        [1, "RUNNING"],
      ],
    );
    assert.deepEqual(told(ids[0]!), [[0, "RUNNING", "RUNNING", false]]);
  });

  it("replaces a dead task in its place, and tells of the death after AWS's delay", async () => {
    const { agent, clock, ecs, ids, told, versions } = await service(2);
    agent.end(ids[1]!, null, "SIGKILL");
    assert.deepEqual(ecs.running.map(({ taskId }) => taskId), [ids[0]]); // prettier-ignore
    assert.equal(ecs.metadata(ids[1]!), undefined);
    await clock.advance(REPLACE_MS - 1);
    assert.equal(ecs.running.length, 1);
    await clock.advance(1);
    assert.deepEqual(ecs.running.map(({ slot }) => slot), [0, 1]); // prettier-ignore
    assert.notEqual(ecs.running[1]?.taskId, ids[1]);
    assert.equal(ecs.restarts(1), 1);
    await clock.advance(DELAY_MS);
    assert.deepEqual(told(ids[1]!), [
      [0, "RUNNING", "RUNNING", false],
      [DELAY_MS, "STOPPED", "DEPROVISIONING", true],
      [DELAY_MS + 1500, "STOPPED", "STOPPED", true],
    ]);
    assert.deepEqual(versions(ids[1]!), [2, 3, 4]);
    const [end] = ecs.ended;
    assert.deepEqual([end?.task.exitCode, end?.task.stopCode], [137, "EssentialContainerExited"]);
  });

  it("terminates a task by SIGTERM to its first process, and kills it only when its time is over", async () => {
    const { agent, clock, ecs, ids, told } = await service(2);
    await ecs.terminate(ids[0]!);
    assert.deepEqual(agent.signals, [{ taskId: ids[0], target: "supervisor", signal: "SIGTERM" }]);
    await clock.advance(119_999);
    assert.equal(agent.signals.length, 1);
    await clock.advance(1);
    assert.deepEqual(agent.signals[1], { taskId: ids[0], target: "task", signal: "SIGKILL" });
    agent.end(ids[0]!, 0);
    assert.deepEqual([ecs.ended[0]?.task.stopCode, ecs.ended[0]?.task.exitCode], ["UserInitiated", 0]);
    await clock.advance(DELAY_MS);
    assert.deepEqual(
      told(ids[0]!).map(([, desired, last, dead]) => [desired, last, dead]),
      [
        ["RUNNING", "RUNNING", false],
        ["STOPPED", "STOPPING", false],
        ["STOPPED", "DEPROVISIONING", true],
      ],
    );
    assert.equal(agent.launched.length, 3, "replaced once, not once more for its end");
  });

  it("replaces nothing when it is scaled in, and goes quiet when it is closed", async () => {
    const { agent, clock, ecs, ids, told } = await service(3);
    await ecs.scale(1);
    assert.deepEqual(
      agent.signals.map(({ taskId, signal }) => [taskId, signal]),
      ids.slice(1).map((id) => [id, "SIGTERM"]),
    );
    agent.end(ids[1]!, 0);
    agent.end(ids[2]!, 0);
    await clock.advance(REPLACE_MS);
    assert.equal(agent.launched.length, 3);
    agent.end(ids[0]!, 1);
    ecs.close();
    await clock.advance(10 * DELAY_MS);
    assert.equal(agent.launched.length, 3);
    assert.equal(told(ids[0]!).length, 1);
    assert.equal(clock.pendingTimers, 0);
  });

  it("strikes as it is told, and refuses to stop what does not run", async () => {
    const { agent, ecs, ids } = await service(1);
    const [id] = ids as [string];
    await ecs.crash(id);
    await ecs.kill(id);
    await ecs.freeze(id);
    await ecs.thaw(id);
    assert.deepEqual(
      agent.signals.map(({ target, signal }) => `${target} ${signal}`),
      ["worker SIGKILL", "task SIGKILL", "task SIGSTOP", "task SIGCONT"],
    );
    await assert.rejects(ecs.terminate("none"), /task none does not run/);
  });
});
