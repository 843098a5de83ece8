import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { isDead } from "../../local/ecs/processes.ts";

/** A command of the local runner in a process of its own, as a user starts it, without a terminal. */
export interface RunningCommand {
  readonly process: ChildProcess;
  /** Its own place for temporary files, which marks all processes that descend from it. */
  readonly temporary: string;
  readonly output: () => string;
  readonly exitCode: Promise<number | null>;
  /** Processes of this run that are alive. */
  readonly alive: () => number[];
  cleanUp(): Promise<void>;
}

export async function startCommand(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<RunningCommand> {
  const temporary = await mkdtemp(path.join(tmpdir(), "ws-fleet-e2e-"));
  const child = spawn(process.execPath, [path.resolve("local", file), ...args], {
    env: { ...env, PATH: process.env["PATH"], TMPDIR: temporary },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => (output += text));
  }
  const exitCode = once(child, "close").then(([code]) => code as number | null);
  const alive = (): number[] => processesWith(`TMPDIR=${temporary}`);
  return {
    process: child,
    temporary,
    output: () => output,
    exitCode,
    alive,
    cleanUp: async () => {
      child.kill("SIGKILL");
      await exitCode;
      for (const pid of alive()) process.kill(pid, "SIGKILL");
      await rm(temporary, { recursive: true, force: true });
    },
  };
}

function processesWith(variable: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(variable) && !isDead(pid);
      } catch {
        // It ended in this moment.
        return false;
      }
    });
}
