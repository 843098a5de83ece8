import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Holding } from "../../../local/audit/holdings.ts";
import { calmBoundMs, costsLeases, judgeRecoveries, type BoundTimings } from "../../../local/chaos/judge.ts";
import type { PlayedChaos } from "../../../local/chaos/player.ts";
import { merged, recoveryDeadline } from "../../../local/chaos/windows.ts";
import { socket } from "../helpers/rows.ts";

const TIMINGS: BoundTimings = {
  leaseMs: 20_000,
  skewMs: 1_000,
  sweepMs: 10_000,
  quietQueueMs: 30_000,
  eventDelayMs: 10_000,
  stream: true,
  queue: true,
  taskEvents: true,
  pingIntervalMs: 3_000,
  idleTimeoutMs: 9_000,
  reconnectCapMs: 10_000,
  handshakeTimeoutMs: 5_000,
};
const ID = "talk-00001";

function holding(task: string, epoch: number, fromMs: number, toMs: number, localPort: number): Holding {
  return {
    connectionId: ID,
    task,
    epoch,
    acting: [{ fromMs, toMs }],
    fenced: 0,
    opens: [{ localPort, atMs: fromMs + 10 }],
  };
}

/** A kill at 10,000 ms whose connection streams again after so long. */
function lateAfter(tookMs: number, ...others: PlayedChaos[]): { late: number; disturbed: number; undisturbed: number } {
  const again = 10_000 + tookMs;
  const holdings = new Map([[ID, [holding("a", 1, 0, 10_000, 1), holding("b", 2, again - 10, again + 9_000, 2)]]]);
  const sockets = new Map([[ID, [socket({ socket: 2, openedAtMs: again, remotePort: 2 })]]]);
  const struck = { kind: "kill" as const, task: "a", slot: 0, atMs: 10_000, held: new Map(), recoveredMs: new Map() };
  const kill: PlayedChaos = {
    planned: { id: 1, does: "process", kind: "kill", rank: 0, atMs: 0, forMs: 0 },
    atMs: 10_000,
    endedAtMs: 10_000,
    struck,
  };
  const { late, disturbed, undisturbed } = judgeRecoveries([kill, ...others], { holdings, sockets }, TIMINGS);
  return { late, disturbed, undisturbed };
}

function stall(atMs: number, endedAtMs: number): PlayedChaos {
  return { planned: { id: 2, does: "stall", atMs: 0, forMs: endedAtMs - atMs }, atMs, endedAtMs };
}

describe("the bound of a recovery", () => {
  it("is the kind's own where nothing else happened", () => {
    assert.deepEqual(lateAfter(17_900), { late: 0, disturbed: 0, undisturbed: 1 });
    assert.deepEqual(lateAfter(18_100), { late: 1, disturbed: 0, undisturbed: 1 });
    assert.deepEqual(lateAfter(18_100, stall(0, 9_999)), { late: 1, disturbed: 0, undisturbed: 1 }, "was over before");
    assert.deepEqual(lateAfter(18_100, stall(29_000, 30_000)), { late: 1, disturbed: 0, undisturbed: 1 }, "came after");
  });

  it("counts from the end of what disturbed it", () => {
    const calm = calmBoundMs(TIMINGS);
    assert.equal(calm, 39_000);
    assert.deepEqual(lateAfter(15_000 + calm - 100, stall(20_000, 25_000)), { late: 0, disturbed: 1, undisturbed: 0 });
    assert.deepEqual(lateAfter(15_000 + calm + 100, stall(20_000, 25_000)), { late: 1, disturbed: 1, undisturbed: 0 });
  });

  it("begins anew with each fault, until there is none within it", () => {
    const bound = (others: [number, number][]): number =>
      recoveryDeadline(
        0,
        others.map(([fromMs, toMs]) => ({ fromMs, toMs })),
        10,
        100,
      ).deadlineMs;
    assert.equal(bound([]), 10);
    assert.equal(bound([[20, 30]]), 10);
    assert.equal(bound([[5, 30]]), 130);
    assert.equal(bound([[5, 30], [120, 125]]), 225); // prettier-ignore
    assert.equal(bound([[5, 30], [131, 200]]), 130); // prettier-ignore
    assert.equal(bound([[5, 5]]), 105, "a moment's fault, too");
  });

  it("joins spans that touch", () => {
    const spans = [{ fromMs: 5, toMs: 9 }, { fromMs: 1, toMs: 3 }, { fromMs: 3, toMs: 4 }, { fromMs: 6, toMs: 7 }]; // prettier-ignore
    assert.deepEqual(merged(spans), [{ fromMs: 1, toMs: 4 }, { fromMs: 5, toMs: 9 }]); // prettier-ignore
  });
});

describe("a freeze", () => {
  it("costs the leases only when it lasts longer than they do", () => {
    const freeze = (thawedAtMs?: number) => ({
      kind: "freeze" as const,
      task: "a",
      slot: 0,
      atMs: 1_000,
      held: new Map<string, number>(),
      recoveredMs: new Map<string, number>(),
      ...(thawedAtMs === undefined ? {} : { thawedAtMs }),
    });
    assert.equal(costsLeases(freeze(9_000), TIMINGS), false);
    assert.equal(costsLeases(freeze(22_000), TIMINGS), true);
    assert.equal(costsLeases(freeze(), TIMINGS), true);
    assert.equal(costsLeases({ ...freeze(1_000), kind: "kill" }, TIMINGS), true);
  });
});
