import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { JournalLine } from "../../../local/audit/journal.ts";
import type { Way } from "../../../local/chaos/network.ts";
import { ChaosPlayer } from "../../../local/chaos/player.ts";
import type { Deed, PlannedFault } from "../../../local/chaos/plan.ts";
import type { FaultRequest } from "../../../local/chaos/proxy/protocol.ts";
import type { Task } from "../../../local/ecs/task.ts";
import { silentLogger } from "../../../shared/logger.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

/** Two tasks; `a` holds c1 and c2, `b` holds c3. */
function scene() {
  const clock = new VirtualClock();
  const log: string[] = [];
  const note = (what: string): void => void log.push(`${clock.monotonicMs()} ${what}`);
  const noted = (what: string): Promise<void> => {
    note(what);
    return Promise.resolve();
  };
  const gone = new Set<string>();
  const strike = (what: string) => (task: string) => {
    if (gone.has(task)) return Promise.reject(new Error(`task ${task} does not run`));
    note(`${what} ${task}`);
    return Promise.resolve({ atMs: clock.monotonicMs() });
  };
  const holders = new Map(Object.entries({ c1: "a", c2: "a", c3: "b" }));
  const running = ["a", "b"].map((taskId, slot) => ({ taskId, slot, desiredStatus: "RUNNING" }) as Readonly<Task>);
  let listener: (line: JournalLine) => void = () => undefined;
  const fleet = {
    ecs: {
      running,
      crash: strike("crash"),
      kill: strike("kill"),
      terminate: strike("term"),
      freeze: strike("freeze"),
      thaw: strike("thaw"),
    },
    live: {
      poll: () => undefined,
      onLine: (one: (line: JournalLine) => void) => (listener = one),
      get: (id: string) => ({ task: holders.get(id), epoch: 5, open: true }),
      heldBy: (task: string) => [...holders].flatMap(([id, holder]) => (holder === task ? [id] : [])),
    },
    upstream: {
      status: () => Promise.resolve({ openSockets: 3 }),
      refuse: (ms: number, status: number) => noted(`refuse ${ms} ${status}`),
      closeAll: (code: number) => noted(`close all ${code}`),
      terminate: () => noted("terminate all"),
      stall: (ms: number) => noted(`stall ${ms}`),
    },
  };
  const way = (one: Way): string => ("slot" in one ? `${one.at} ${one.slot}` : one.at);
  const network = {
    begin: ({ id, effect }: Omit<FaultRequest, "proxies">, one: Way) => noted(`begin ${id} ${effect.kind} ${way(one)}`),
    end: (id: number) => noted(`end ${id}`).then(() => ({ connections: id, bytes: 7 })),
  };
  const abort = new AbortController();
  const player = new ChaosPlayer({
    fleet: fleet as unknown as ConstructorParameters<typeof ChaosPlayer>[0]["fleet"],
    network,
    clock,
    signal: abort.signal,
    logger: silentLogger,
    onBegin: () => undefined,
    onEnd: () => undefined,
  });
  const play = (...deeds: (Deed & { atMs: number; forMs: number })[]) => {
    const plan = deeds.map((deed, at): PlannedFault => ({ ...deed, id: at + 1 }));
    return player.play(plan, clock.monotonicMs());
  };
  const open = (connectionId: string, epoch: number): void =>
    listener({ t: clock.monotonicMs(), task: "b", connectionId, epoch, event: "open" });
  return { abort, clock, gone, holders, log, open, play, player, startMs: clock.monotonicMs() };
}

const HOLE = { kind: "black-hole", direction: "both" } as const;

describe("the player of chaos", () => {
  it("plays every fault at its time, several at once, and undoes each at its end", async () => {
    const { clock, log, play, player, startMs } = scene();
    const done = play(
      { does: "network", effect: HOLE, place: { at: "dynamodb", rank: 0 }, atMs: 1_000, forMs: 5_000 },
      { does: "process", kind: "crash", rank: 1, atMs: 2_000, forMs: 0 },
      { does: "stall", atMs: 3_000, forMs: 500 },
      { does: "network", effect: { kind: "cut" }, place: { at: "upstream", share: 0.5 }, atMs: 4_000, forMs: 1_000 },
      { does: "restart", graceful: true, atMs: 7_000, forMs: 2_000 },
      { does: "restart", graceful: false, atMs: 8_000, forMs: 2_000 },
    );
    await clock.advance(10_000);
    await done;
    const at = (ms: number, what: string): string => `${startMs + ms} ${what}`;
    assert.deepEqual(log, [
      at(1_000, "begin 1 black-hole dynamodb 0"),
      at(2_000, "crash b"),
      at(3_000, "stall 500"),
      at(4_000, "begin 4 cut upstream"),
      at(5_000, "end 4"),
      at(6_000, "end 1"),
      at(7_000, "refuse 2000 503"),
      at(7_000, "close all 1012"),
      at(8_000, "refuse 2000 503"),
      at(8_000, "terminate all"),
    ]);
    assert.deepEqual(
      player.played.map(({ atMs, endedAtMs }) => [atMs - startMs, (endedAtMs ?? NaN) - startMs]),
      [[1_000, 6_000], [2_000, 2_000], [3_000, 3_500], [4_000, 5_000], [7_000, 9_000], [8_000, 10_000]], // prettier-ignore
    );
  });

  it("aims at the task of that rank by what it holds then, and never at an idle one while others hold something", async () => {
    const { clock, holders, log, play } = scene();
    const done = play(
      { does: "process", kind: "kill", rank: 0, atMs: 1_000, forMs: 0 },
      { does: "process", kind: "kill", rank: 1, atMs: 2_000, forMs: 0 },
      { does: "process", kind: "kill", rank: 1, atMs: 4_000, forMs: 0 },
    );
    await clock.advance(3_000);
    for (const id of holders.keys()) holders.set(id, "b");
    await clock.advance(2_000);
    await done;
    assert.deepEqual(
      log.map((line) => line.split(" ").slice(1).join(" ")),
      ["kill a", "kill b", "kill b"],
    );
  });

  it("notes what the struck task held, and when that streams again under a later epoch", async () => {
    const { clock, open, play, player } = scene();
    const done = play({ does: "process", kind: "crash", rank: 0, atMs: 1_000, forMs: 0 });
    await clock.advance(1_400);
    open("c1", 5);
    open("c1", 6);
    await done;
    const [struck] = player.struck;
    assert.deepEqual([...(struck?.held ?? [])], [["c1", 5], ["c2", 5]]); // prettier-ignore
    assert.deepEqual([...(struck?.recoveredMs ?? [])], [["c1", 400]]);
  });

  it("wakes a task that was frozen twice when the later freeze is over", async () => {
    const { clock, log, play, player, startMs } = scene();
    const done = play(
      { does: "process", kind: "freeze", rank: 0, atMs: 1_000, forMs: 9_000 },
      { does: "process", kind: "freeze", rank: 0, atMs: 2_000, forMs: 3_000 },
    );
    await clock.advance(10_000);
    await done;
    assert.deepEqual(log, [`${startMs + 1_000} freeze a`, `${startMs + 2_000} freeze a`, `${startMs + 10_000} thaw a`]);
    assert.deepEqual(
      player.struck.map(({ thawedAtMs }) => (thawedAtMs ?? NaN) - startMs),
      [10_000, 10_000],
    );
  });

  it("counts what could not be done as skipped, with the reason, and excuses nothing by it", async () => {
    const { clock, gone, play, player } = scene();
    gone.add("a");
    const done = play({ does: "process", kind: "crash", rank: 0, atMs: 1_000, forMs: 0 });
    await clock.advance(1_000);
    await done;
    assert.deepEqual(player.struck, []);
    const [played] = player.played;
    assert.deepEqual([played?.skipped, played?.struck], ["task a does not run", undefined]);
  });

  it("undoes what is on when it is interrupted", async () => {
    const { abort, clock, log, play, startMs } = scene();
    const done = play({ does: "network", effect: HOLE, place: { at: "functions" }, atMs: 0, forMs: 5_000 });
    const refused = assert.rejects(done, /interrupted/);
    await clock.advance(100);
    abort.abort();
    await refused;
    assert.deepEqual(log, [`${startMs} begin 1 black-hole functions`, `${startMs + 100} end 1`]);
  });
});
