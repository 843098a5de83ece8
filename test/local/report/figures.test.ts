import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { holdingsOf } from "../../../local/audit/holdings.ts";
import type { JournalEvent, JournalLine, UsageLine } from "../../../local/audit/journal.ts";
import { excusingFaults } from "../../../local/report/excuses.ts";
import { measureRecovery, portsOf } from "../../../local/report/recoveries.ts";
import { perConnectionMinute, workerProcesses } from "../../../local/report/usage.ts";
import type { SocketRecord } from "../../../local/upstream/record.ts";
import { socket } from "../helpers/rows.ts";

const FAULT_AT = 10_000;
const fault = { kind: "kill", task: "a", atMs: FAULT_AT };

function line(task: string, connectionId: string, epoch: number, t: number, event: JournalEvent): JournalLine {
  const localPort = event === "open" ? { localPort: 40_000 + epoch } : {};
  return { t, task, connectionId, epoch, event, ...(event === "held" ? { deadline: t + 17_000 } : {}), ...localPort };
}

function traces(journal: JournalLine[], sockets: SocketRecord[]) {
  return {
    holdings: Map.groupBy(holdingsOf(journal, [{ task: "a", atMs: FAULT_AT + 1 }]), ({ connectionId }) => connectionId),
    sockets: Map.groupBy(sockets, ({ connectionId }) => connectionId),
  };
}

/** `a` holds c1, c2 and c3 at the fault; c4 it gave back before, c5 it never had. c3 is taken over and never opened. */
const journal = [
  ...["c1", "c2", "c3", "c4"].flatMap((id, at) => [
    line("a", id, 10 * (at + 1), 1_000, "held"),
    line("a", id, 10 * (at + 1), 1_100, "open"),
  ]),
  line("a", "c4", 40, 9_000, "released"),
  line("b", "c4", 41, 9_200, "held"),
  line("b", "c4", 41, 9_300, "open"),
  line("b", "c5", 50, 1_000, "held"),
  line("b", "c1", 11, 12_000, "held"),
  line("b", "c1", 11, 12_210, "open"),
  line("b", "c2", 21, 12_000, "held"),
  line("b", "c2", 21, 13_505, "open"),
  line("b", "c3", 31, 12_000, "held"),
];
const opened = (connectionId: string, number: number, openedAtMs: number): SocketRecord => {
  return { ...socket({ socket: number, openedAtMs, remotePort: 40_000 + number }), connectionId };
};
const sockets = [
  opened("c1", 10, 1_090),
  // The struck worker's last dial reaches the upstream after the fault: no recovery.
  opened("c1", 10, FAULT_AT + 2),
  opened("c1", 11, 12_200),
  opened("c2", 20, 1_090),
  opened("c2", 21, 13_500),
  opened("c3", 30, 1_090),
  opened("c4", 40, 1_090),
  opened("c4", 41, 9_290),
];

describe("recovery", () => {
  it("is counted from the fault to the next owner's socket, for every connection that was held", () => {
    const { holdings, sockets: bySocket } = traces(journal, sockets);
    const result = measureRecovery(fault, holdings, bySocket);
    assert.deepEqual(result.held, ["c1", "c2", "c3"]);
    assert.deepEqual(result.recoveryMs, [2_200, 3_500]);
    assert.deepEqual(result.neverRecovered, ["c3"], "it must not vanish");
  });

  it("does not take another use of a port for the next owner's socket", () => {
    const { holdings } = traces(journal, []);
    const reused = Map.groupBy([opened("c1", 11, 60_000)], ({ connectionId }) => connectionId);
    assert.ok(measureRecovery(fault, holdings, reused).neverRecovered.includes("c1"));
  });

  it("of a frozen task that is woken counts the others' sockets, not its own", () => {
    const frozen = [
      line("a", "c1", 10, 1_000, "held"),
      line("a", "c1", 10, 1_100, "open"),
      line("b", "c1", 11, 29_000, "held"),
      line("b", "c1", 11, 29_100, "open"),
      line("a", "c1", 10, 35_000, "fenced"),
    ];
    const { holdings, sockets: bySocket } = traces(frozen, [opened("c1", 10, 1_090), opened("c1", 11, 29_095)]);
    assert.deepEqual(measureRecovery({ ...fault, kind: "freeze" }, holdings, bySocket).recoveryMs, [19_095]);
  });
});

describe("excuses for what a live feed said", () => {
  const { holdings, sockets: bySocket } = traces(journal, sockets);

  it("are the struck task's sockets of what it held", () => {
    const [excuse] = excusingFaults([fault], { holdings, sockets: bySocket });
    assert.deepEqual([...(excuse?.connections ?? [])], ["c1", "c2", "c3"]);
    assert.deepEqual(excuse?.remotePorts, portsOf(fault, holdings));
    assert.deepEqual([...portsOf(fault, holdings)].sort(), [40_010, 40_020, 40_030, 40_040]);
    assert.equal(excuse.untilMs, undefined);
  });

  it("end when a frozen task is woken, and there is none for a terminated one", () => {
    const faults = [
      { ...fault, kind: "freeze", thawedAtMs: 40_000 },
      { ...fault, kind: "term" },
    ];
    const excuses = excusingFaults(faults, { holdings, sockets: bySocket });
    assert.deepEqual(excuses.map(({ kind, untilMs }) => [kind, untilMs]), [["freeze", 40_000]]); // prettier-ignore
  });
});

describe("usage", () => {
  const at = (t: number, requests: number, cpuMs: number, rssMb = 50): UsageLine => ({
    t,
    requests,
    readUnits: requests / 10,
    writeUnits: 3 * requests,
    leaseWriteUnits: requests,
    oldestPendingMs: 0,
    rssBytes: rssMb * 2 ** 20,
    cpuMs,
  });
  const steady = {
    taskId: "a",
    slot: 0,
    usage: [at(0, 0, 100), at(60_000, 600, 6_100, 80), at(120_000, 1_200, 12_100)],
  };
  const killed = { taskId: "b", slot: 1, usage: [at(0, 0, 0), at(30_000, 300, 600)] };
  const replacement = { taskId: "c", slot: 1, usage: [at(60_000, 10, 0, 60), at(120_000, 610, 2_400)] };
  const all = [steady, killed, replacement];

  it("is what was used within the window, for each connection and minute", () => {
    const window = { fromMs: 15_000, toMs: 105_000 };
    // 900 of the steady one, 150 of the killed one, 460 of its replacement, which counts from its own start.
    assert.deepEqual(perConnectionMinute(all, 10, window), {
      dynamodbRequests: 100.67,
      writeUnits: 302,
      leaseWriteUnits: 100.67,
      readUnits: 10.07,
    });
    assert.throws(() => perConnectionMinute(all, 10, { fromMs: 5, toMs: 5 }), /window/);
  });

  it("of processor and memory is told for each place, over all that ran in it", () => {
    assert.deepEqual(
      workerProcesses(all, 3, (slot) => (slot === 1 ? 1 : 0)),
      [
        { rssMb: 80, cpuPercent: 10, restarts: 0 },
        { rssMb: 60, cpuPercent: 3.33, restarts: 1 },
        { rssMb: 0, cpuPercent: 0, restarts: 0 },
      ],
    );
  });
});
