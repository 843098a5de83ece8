import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { ownRecord, readRecord, writeRecord, type OwnerRecord } from "../../../local/run/folder-owner.ts";
import { createRunFolder, KEPT_MS, sweepRunFolders } from "../../../local/run/folder.ts";
import { startTicksOf } from "../../../local/ecs/processes.ts";

describe("run folders", () => {
  let parent: string;
  let other: ChildProcess;
  before(async () => {
    other = spawn("sleep", ["600"], { stdio: "ignore" });
    await once(other, "spawn");
  });
  after(async () => {
    other.kill("SIGKILL");
    await once(other, "exit");
  });
  beforeEach(async () => {
    parent = await mkdtemp(path.join(tmpdir(), "ws-fleet-folder-"));
  });
  afterEach(() => rm(parent, { recursive: true }));

  const folderOf = async (name: string, record?: OwnerRecord): Promise<string> => {
    const root = path.join(parent, `ws-fleet-run-${name}`);
    await mkdir(path.join(root, "logs"), { recursive: true });
    if (record !== undefined) await writeRecord(root, record);
    return root;
  };
  const living = (): OwnerRecord => ({ ...ownRecord(), pid: other.pid!, startTicks: startTicksOf(other.pid!)! });

  it("of a process that lives stay; those of one that ended are removed by the next run", async () => {
    const live = await folderOf("live", living());
    const dead = await folderOf("dead", { ...ownRecord(), pid: 2 ** 22 + 1 });
    const reused = await folderOf("reused", { ...living(), startTicks: living().startTicks - 1 });
    const own = await createRunFolder(parent);
    assert.deepEqual([live, dead, reused, own.root].map(existsSync), [true, false, false, true]);
    await own.remove();
    assert.deepEqual(await readdir(parent), [path.basename(live)]);
  });

  it("that were kept for people stay for a day, though their process is gone", async () => {
    const own = await createRunFolder(parent);
    await own.keep();
    const { keptAtMs, ...record } = (await readRecord(own.root))!;
    assert.ok(keptAtMs !== undefined);
    await writeRecord(own.root, { ...record, pid: 2 ** 22 + 1, keptAtMs });
    await sweepRunFolders(parent, keptAtMs + KEPT_MS);
    assert.equal(existsSync(own.root), true);
    await sweepRunFolders(parent, keptAtMs + KEPT_MS + 1);
    assert.equal(existsSync(own.root), false);
  });

  it("stay when nobody can tell whose they are: no record, a broken one, another host's or container's", async () => {
    const none = await folderOf("none");
    const broken = await folderOf("broken");
    await writeFile(path.join(broken, "owner.json"), '{"pid":');
    const [host, boot, namespace] = ownRecord().place.split(" ");
    const gone = { ...ownRecord(), pid: 2 ** 22 + 1 };
    const elsewhere = await folderOf("elsewhere", { ...gone, place: `x${host} x${boot} ${namespace}` });
    const container = await folderOf("container", { ...gone, place: `${host} ${boot} pid:[1]` });
    const beforeRestart = await folderOf("before", { ...gone, place: `${host} x${boot} ${namespace}` });
    const unlike = path.join(parent, "ws-fleet-runner");
    await mkdir(unlike);
    await sweepRunFolders(parent, Date.now() + 10 * KEPT_MS);
    const left = [none, broken, elsewhere, container, beforeRestart, unlike].map(existsSync);
    assert.deepEqual(left, [true, true, true, true, false, true]);
  });
});
