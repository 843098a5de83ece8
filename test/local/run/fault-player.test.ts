import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { JournalLine } from "../../../local/audit/journal.ts";
import type { Task } from "../../../local/ecs/task.ts";
import { FROZEN_ON_MS, type FaultKind } from "../../../local/run/fault-plan.ts";
import { FaultPlayer } from "../../../local/run/fault-player.ts";
import type { LiveHolding } from "../../../local/run/live-state.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const LIMIT_MS = 30_000;

/** Two tasks; `a` holds c1 and c2, `b` holds nothing. */
function scene() {
  const clock = new VirtualClock();
  const strikes: [atMs: number, what: string, task: string][] = [];
  const strike = (what: string) => (task: string) => {
    strikes.push([clock.monotonicMs(), what, task]);
    return Promise.resolve({ atMs: clock.monotonicMs() });
  };
  const holdings = new Map<string, LiveHolding>([
    ["c1", { task: "a", epoch: 5, open: true }],
    ["c2", { task: "a", epoch: 6, open: true }],
  ]);
  let listener: (line: JournalLine) => void = () => undefined;
  const up = new Set(["a", "b"]);
  const running = ["a", "b"].map((taskId, slot) => ({ taskId, slot, desiredStatus: "RUNNING" }) as Readonly<Task>);
  const fleet = {
    ecs: {
      running,
      crash: strike("crash"),
      kill: strike("kill"),
      terminate: strike("term"),
      freeze: strike("freeze"),
      thaw: strike("thaw"),
    },
    board: { heardOf: (task: string) => up.has(task) },
    live: {
      holdings,
      poll: () => undefined,
      onLine: (one: (line: JournalLine) => void) => (listener = one),
      get: (id: string) => holdings.get(id),
      heldBy: (task: string) => [...holdings].flatMap(([id, holding]) => (holding.task === task ? [id] : [])),
    },
  };
  const abort = new AbortController();
  const player = new FaultPlayer({
    fleet: fleet as unknown as ConstructorParameters<typeof FaultPlayer>[0]["fleet"],
    workers: 2,
    clock,
    random: () => 0,
    signal: abort.signal,
    recoveryLimitMs: () => LIMIT_MS,
  });
  const open = (connectionId: string, epoch: number, task = "b"): void => {
    holdings.set(connectionId, { task, epoch, open: true });
    listener({ t: clock.monotonicMs(), task, connectionId, epoch, event: "open" });
  };
  const play = (...kinds: FaultKind[]) => player.play(kinds.map((kind) => ({ kind, atMs: 5_000 })), 0); // prettier-ignore
  return { abort, clock, open, play, player, strikes, up };
}

describe("the fault player", () => {
  it("strikes a task that holds connections, and waits for the recovery before the next fault", async () => {
    const { clock, open, play, player, strikes } = scene();
    const done = play("crash", "term");
    await clock.advance(4_999);
    assert.deepEqual(strikes, []);
    await clock.advance(1);
    assert.deepEqual(strikes, [[5_000, "crash", "a"]]);
    assert.deepEqual([...(player.played[0]?.held ?? [])], [["c1", 5], ["c2", 6]]); // prettier-ignore
    await clock.advance(700);
    open("c1", 7);
    open("c1", 8);
    open("c2", 6, "a");
    await clock.advance(5_000);
    assert.equal(strikes.length, 1, "c2 has only its old holding");
    open("c2", 9);
    await clock.advance(500);
    assert.deepEqual(strikes.slice(1), [[10_750, "term", "b"]]);
    assert.deepEqual([...(player.played[0]?.recoveredMs ?? [])], [["c1", 700], ["c2", 5_700]]); // prettier-ignore
    open("c1", 20, "a");
    open("c2", 20, "a");
    await clock.advance(500);
    await done;
  });

  it("waits for the tasks to be up again, and goes on when a recovery does not come", async () => {
    const { clock, play, player, strikes, up } = scene();
    up.delete("b");
    const done = play("kill");
    await clock.advance(10_000);
    assert.deepEqual(strikes, []);
    up.add("b");
    await clock.advance(500);
    assert.equal(strikes.length, 1);
    await clock.advance(LIMIT_MS + 1_000);
    await done;
    assert.equal(player.played[0]?.recoveredMs.size, 0);
  });

  it("wakes a frozen task a while after the others took over", async () => {
    const { clock, open, play, player, strikes } = scene();
    const done = play("freeze");
    await clock.advance(20_000);
    open("c1", 9);
    open("c2", 9);
    await clock.advance(FROZEN_ON_MS - 1);
    assert.equal(strikes.length, 1);
    await clock.advance(500);
    await done;
    const [, [atMs, what, task]] = strikes as [unknown, (typeof strikes)[0]];
    assert.deepEqual([what, task, player.played[0]?.thawedAtMs], ["thaw", "a", atMs]);
  });

  it("ends at once when it is interrupted", async () => {
    const { abort, clock, play, strikes } = scene();
    const done = assert.rejects(play("crash"), { name: "InterruptedError" });
    await clock.advance(1_000);
    abort.abort();
    await done;
    assert.deepEqual(strikes, []);
  });
});
