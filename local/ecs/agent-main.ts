import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { SystemClock } from "../../shared/clock.ts";
import { childInput, endWithParent, report } from "../stack/child-side.ts";
import type { AgentMessage, AgentRequest, Launch, Signal, Signalled } from "./agent-protocol.ts";
import { childrenOf, isDead, sendSignal } from "./processes.ts";

/**
 * Child process: plays the container agent. It starts each task as a process group of its own, as a container is, and
 * kills all of them when the runner closes the channel or is gone, however that came.
 */

const DEATH_POLL_MS = 1;
const DEATH_LIMIT_MS = 10_000;

const clock = new SystemClock();
/** The first process of each running task; its id names the group too. */
const running = new Map<string, number>();

childInput();
endWithParent(async () => {
  const pids = [...running.values()].flatMap((pid) => [pid, ...childrenOf(pid)]);
  for (const pid of running.values()) sendSignal(-pid, "SIGKILL");
  await allDead(pids);
});

process.on("message", (request: AgentRequest) => {
  answer(request).then(
    (result) => tell({ id: request.id, result }),
    (error: unknown) => tell({ id: request.id, error: error instanceof Error ? error.message : String(error) }),
  );
});
report({ ready: {} });

async function answer(request: AgentRequest): Promise<Signalled | { pid: number }> {
  return "launch" in request ? await launch(request.launch) : await signal(request.signal);
}

async function launch({ taskId, entry, env, logFile }: Launch): Promise<{ pid: number }> {
  const log = openSync(logFile, "a");
  try {
    const child = spawn(process.execPath, [entry], { env, detached: true, stdio: ["ignore", log, log] });
    const pid = await new Promise<number>((resolve, reject) => {
      child.once("spawn", () => resolve(child.pid ?? 0));
      child.once("error", reject);
    });
    running.set(taskId, pid);
    child.once("exit", (code, signal) => {
      const atMs = clock.monotonicMs();
      // As in a container, nothing outlives the first process.
      sendSignal(-pid, "SIGKILL");
      running.delete(taskId);
      tell({ ended: { taskId, code, signal, atMs } });
    });
    return { pid };
  } finally {
    closeSync(log);
  }
}

async function signal({ taskId, target, signal: name }: Signal): Promise<Signalled> {
  const pid = running.get(taskId);
  if (pid === undefined) throw new Error(`task ${taskId} does not run`);
  const children = childrenOf(pid);
  if (target === "worker" && children.length === 0) throw new Error(`task ${taskId} has no worker process`);
  const pids = target === "task" ? [pid, ...children] : target === "worker" ? children : [pid];
  const atMs = clock.monotonicMs();
  if (target === "task") sendSignal(-pid, name);
  else for (const one of pids) sendSignal(one, name);
  if (name !== "SIGKILL") return { atMs };
  await allDead(pids);
  return { atMs, deadAtMs: clock.monotonicMs() };
}

async function allDead(pids: readonly number[]): Promise<void> {
  const limitMs = clock.monotonicMs() + DEATH_LIMIT_MS;
  while (!pids.every(isDead)) {
    if (clock.monotonicMs() > limitMs) throw new Error(`processes ${pids.join(", ")} do not die`);
    await delay(DEATH_POLL_MS);
  }
}

function tell(message: AgentMessage): void {
  if (process.connected) process.send?.(message);
}
