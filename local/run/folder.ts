import { rmSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { isLeftBehind, ownRecord, readRecord, writeRecord } from "./folder-owner.ts";

/** Where one run keeps its bundles, logs and journals. */
export interface RunFolder {
  readonly root: string;
  readonly bundles: string;
  readonly upstreamRecord: string;
  readonly runnerLog: string;
  journal(taskId: string): string;
  log(taskId: string): string;
  /** Leaves the folder for people to look into; a later run removes it after {@link KEPT_MS}. */
  keep(): Promise<void>;
  remove(): Promise<void>;
}

const PREFIX = "ws-fleet-run-";
/** A day: long enough to look into what a failed run left. */
export const KEPT_MS = 24 * 60 * 60 * 1000;

/** Creates the folder of this run, and removes those of runs that could not do it themselves. */
export async function createRunFolder(parent = tmpdir()): Promise<RunFolder> {
  const root = await mkdtemp(path.join(parent, PREFIX));
  const inside = (...parts: string[]): string => path.join(root, ...parts);
  const owner = ownRecord();
  await writeRecord(root, owner);
  await mkdir(inside("journals"));
  await mkdir(inside("logs"));
  // A second Ctrl-C ends this process without waiting for anything. What children still write is swept by the next run.
  const removeAtExit = (): void => {
    try {
      rmSync(root, { recursive: true, force: true });
    } catch {
      // The next run sweeps it.
    }
  };
  process.on("exit", removeAtExit);
  await sweepRunFolders(parent, Date.now());
  return {
    root,
    bundles: inside("dist"),
    upstreamRecord: inside("upstream.ndjson"),
    runnerLog: inside("logs", "runner.log"),
    journal: (taskId) => inside("journals", `${taskId}.ndjson`),
    log: (taskId) => inside("logs", `task-${taskId}.log`),
    keep: async () => {
      process.off("exit", removeAtExit);
      await writeRecord(root, { ...owner, keptAtMs: Date.now() });
    },
    remove: async () => {
      await rm(root, { recursive: true, force: true, maxRetries: 3 });
      process.off("exit", removeAtExit);
    },
  };
}

/**
 * Removes run folders whose process is gone, and kept ones that are old. A folder that tells nothing of its owner, or whose
 * owner cannot be judged from here, stays.
 */
export async function sweepRunFolders(parent: string, nowMs: number): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(PREFIX)) continue;
    const root = path.join(parent, name);
    const record = await readRecord(root);
    if (record === undefined) continue;
    const old = record.keptAtMs !== undefined && nowMs - record.keptAtMs > KEPT_MS;
    if (!old && !(record.keptAtMs === undefined && isLeftBehind(record))) continue;
    // Another user's, or another run is sweeping, too.
    await rm(root, { recursive: true, force: true }).catch(() => undefined);
  }
}
