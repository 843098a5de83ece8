import { readFileSync } from "node:fs";

/**
 * Direct children of a process, from Linux's process table. Empty when it has none or has ended.
 *
 * @throws where there is no /proc
 */
export function childrenOf(pid: number): number[] {
  const listed = read(`/proc/${pid}/task/${pid}/children`);
  return (listed ?? "").split(" ").filter((part) => part !== "").map(Number); // prettier-ignore
}

/** Whether the process can never run again: it is gone, or only its exit code is left to be collected. */
export function isDead(pid: number): boolean {
  const stat = read(`/proc/${pid}/stat`);
  // The name before it is in parentheses and may hold any character.
  return stat === undefined || /^[ZX]/u.test(stat.slice(stat.lastIndexOf(")") + 2));
}

/** When the process was started, in clock ticks since the host's boot; undefined when there is none. */
export function startTicksOf(pid: number): number | undefined {
  const stat = read(`/proc/${pid}/stat`);
  // The 22nd field; the second one, the name, may hold spaces, and the third comes right behind its parenthesis.
  const ticks = stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  return ticks === undefined ? undefined : Number(ticks);
}

/** Sends a signal; false when there is nobody to receive it. A negative id names a process group. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (codeOf(error) === "ESRCH") return false;
    throw error;
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    // ESRCH: the process ended while it was read.
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ESRCH") return undefined;
    throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
