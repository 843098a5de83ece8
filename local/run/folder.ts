import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

/** Where one run keeps its bundles, logs and journals. */
export interface RunFolder {
  readonly root: string;
  readonly bundles: string;
  readonly upstreamRecord: string;
  readonly runnerLog: string;
  journal(taskId: string): string;
  log(taskId: string): string;
  remove(): Promise<void>;
}

export async function createRunFolder(): Promise<RunFolder> {
  const root = await mkdtemp(path.join(tmpdir(), "ws-fleet-run-"));
  const inside = (...parts: string[]): string => path.join(root, ...parts);
  await mkdir(inside("journals"));
  await mkdir(inside("logs"));
  return {
    root,
    bundles: inside("dist"),
    upstreamRecord: inside("upstream.ndjson"),
    runnerLog: inside("logs", "runner.log"),
    journal: (taskId) => inside("journals", `${taskId}.ndjson`),
    log: (taskId) => inside("logs", `task-${taskId}.log`),
    remove: () => rm(root, { recursive: true, force: true }),
  };
}
