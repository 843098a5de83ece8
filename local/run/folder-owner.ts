import { readFileSync, readlinkSync } from "node:fs";
import { readFile, rename, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import path from "node:path";
import { z } from "zod";
import { isDead, startTicksOf } from "../ecs/processes.ts";

const schema = z.object({
  pid: z.number().int().positive(),
  /** In clock ticks since the host's boot: tells a process from a later one with the same id. */
  startTicks: z.number(),
  /** Within which the two above mean something. */
  place: z.string(),
  keptAtMs: z.number().optional(),
});

/** Which process a run folder belongs to. */
export type OwnerRecord = z.infer<typeof schema>;

const FILE = "owner.json";

/** Of this process. */
export function ownRecord(): OwnerRecord {
  return { pid: process.pid, startTicks: startTicksOf(process.pid) ?? 0, place: place() };
}

export async function writeRecord(root: string, record: OwnerRecord): Promise<void> {
  // Others may be reading: they see the old one or the new one.
  const next = path.join(root, `${FILE}.next`);
  await writeFile(next, JSON.stringify(record));
  await rename(next, path.join(root, FILE));
}

/** Undefined when there is none that can be read. */
export async function readRecord(root: string): Promise<OwnerRecord | undefined> {
  try {
    return schema.parse(JSON.parse(await readFile(path.join(root, FILE), "utf8")));
  } catch {
    return undefined;
  }
}

/** Whether the owner has certainly ended. */
export function isLeftBehind(record: OwnerRecord): boolean {
  const here = place();
  // After a restart of the machine no process of before lives, whoever it belonged to.
  if (record.place !== here) return bootOf(record.place) !== bootOf(here) && hostOf(record.place) === hostOf(here);
  return isDead(record.pid) || startTicksOf(record.pid) !== record.startTicks;
}

/** Host, boot and process namespace: a process id from elsewhere says nothing here. */
function place(): string {
  const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  return `${hostname()} ${boot} ${readlinkSync("/proc/self/ns/pid")}`;
}

function hostOf(text: string): string | undefined {
  return text.split(" ")[0];
}

function bootOf(text: string): string | undefined {
  return text.split(" ")[1];
}
