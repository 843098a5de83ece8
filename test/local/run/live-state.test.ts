import assert from "node:assert/strict";
import { appendFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, it } from "node:test";
import { LiveState } from "../../../local/run/live-state.ts";

describe("the live state", () => {
  it("follows journals while they grow, whatever of a line is there already", async (t) => {
    const folder = await mkdtemp(path.join(tmpdir(), "ws-fleet-live-"));
    t.after(() => rm(folder, { recursive: true }));
    const [a, b] = [path.join(folder, "a"), path.join(folder, "b")];
    const live = new LiveState();
    t.after(() => live.close());
    live.follow("a", a);
    live.follow("b", b);
    live.poll();
    const line = (task: string, connectionId: string, event: string, epoch: number) =>
      `${JSON.stringify({ t: epoch, task, connectionId, epoch, event, deadline: 9 })}\n`;
    const seen: string[] = [];
    live.onLine(({ task, event, connectionId }) => seen.push(`${task} ${event} ${connectionId}`));

    const [held, open] = [line("a", "c1", "held", 1), line("a", "c1", "open", 1)];
    appendFileSync(a, held + open.slice(0, 20));
    live.poll();
    assert.deepEqual(live.get("c1"), { task: "a", epoch: 1, open: false });
    appendFileSync(a, open.slice(20) + '{"t":1,"event":"usage","requests":1,"readUnits":0,"writeUnits":3,"leaseWriteUnits":2,"rssBytes":5,"cpuMs":2,"oldestPendingMs":0}\n'); // prettier-ignore
    appendFileSync(a, line("a", "c2", "held", 4) + line("a", "c2", "open", 4) + line("a", "c3", "held", 7));
    live.poll();
    assert.equal(live.openCount(), 2);
    assert.deepEqual(live.heldBy("a").sort(), ["c1", "c2", "c3"]);

    appendFileSync(a, line("a", "c2", "closed", 4) + line("a", "c3", "released", 7));
    appendFileSync(b, line("b", "c1", "held", 2));
    live.poll();
    assert.equal(live.openCount(), 0);
    assert.deepEqual(live.get("c1"), { task: "b", epoch: 2, open: false }, "the higher epoch counts");
    appendFileSync(a, line("a", "c1", "renewed", 1) + line("a", "c1", "fenced", 1));
    live.poll();
    assert.deepEqual([live.get("c1")?.task, live.get("c3")], ["b", undefined], "an older holding ends for itself");

    live.forget("a");
    assert.deepEqual(live.heldBy("a"), []);
    assert.deepEqual([...live.holdings.keys()], ["c1"]);
    assert.equal(seen.length, 10);
  });
});
