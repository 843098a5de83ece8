import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { holdingsOf } from "../../../local/audit/holdings.ts";
import type { JournalLine } from "../../../local/audit/journal.ts";
import { measure, type RunFacts } from "../../../local/report/measure.ts";
import { reportText } from "../../../local/report/text.ts";
import { socket } from "../helpers/rows.ts";

const ID = "talk-00001";

const messages = {
  sent: 100,
  stored: 97,
  missing: 0,
  duplicated: 0,
  differing: 0,
  disordered: 0,
  gaps: 1,
  gapMessages: 3,
};

const handedOver: JournalLine[] = [
  { t: 1_000, task: "a", connectionId: ID, epoch: 1, event: "held", deadline: 18_000 },
  { t: 1_100, task: "a", connectionId: ID, epoch: 1, event: "open", localPort: 40_001 },
  { t: 10_500, task: "b", connectionId: ID, epoch: 2, event: "held", deadline: 27_500 },
  { t: 10_810, task: "b", connectionId: ID, epoch: 2, event: "open", localPort: 40_002 },
];

/** One connection, handed from `a` to `b` by a crash. */
function facts(change: Partial<RunFacts> = {}, journal = handedOver, openedAtMs = 10_800): RunFacts {
  const deaths = [{ task: "a", atMs: 10_003 }];
  const sockets = [socket({ socket: 1, openedAtMs: 1_090 }), socket({ socket: 2, openedAtMs })];
  return {
    options: {
      connections: 1,
      workers: 2,
      seconds: 20,
      rate: 5,
      seed: 1,
      taskEvents: true,
      stream: true,
      queue: false,
    },
    connectionIds: [ID],
    startSentAtMs: new Map([[ID, 700]]),
    firstOpenAtMs: new Map([[ID, 1_090]]),
    window: { fromMs: 1_200, toMs: 21_200 },
    faults: [{ kind: "crash", task: "a", atMs: 10_000 }],
    evidence: {
      journal,
      deaths,
      usage: [],
      holdings: Map.groupBy(holdingsOf(journal, deaths), ({ connectionId }) => connectionId),
      sockets: new Map([[ID, sockets]]),
    },
    wallMinusHostMs: 1_000_000,
    unowned: [],
    audit: { messages, rows: [{ connectionId: ID, leaseEpoch: 2, receivedAtMs: 1_011_000 }], examples: [] },
    stopped: { closedMs: [1_500.4], limitMs: 8_000, late: 0 },
    drained: true,
    ended: [
      { taskId: "a", slot: 0, exitCode: 137, stopCode: "EssentialContainerExited" },
      { taskId: "b", slot: 1, exitCode: 0, stopCode: "ServiceSchedulerInitiated" },
    ],
    restartsOf: () => 0,
    functions: { reconcile: { invocations: 2, errors: 0 } },
    ...change,
  };
}

describe("the report", () => {
  it("of a good run is good, and tells every figure", () => {
    const report = measure(facts());
    assert.deepEqual([report.ok, report.problems, report.examples], [true, [], []]);
    assert.deepEqual(report.recoveryMs, {
      start: { n: 1, p50: 390, p99: 390, max: 390 },
      crash: { n: 1, p50: 800, p99: 800, max: 800 },
    });
    assert.deepEqual(report.faults, [
      {
        kind: "crash",
        task: "a",
        atMs: 8_800,
        connections: 1,
        recoveryMs: { n: 1, p50: 800, p99: 800, max: 800 },
        neverRecovered: 0,
      },
    ]);
    assert.deepEqual(report.ownership, {
      doublyOwned: 0,
      unowned: 0,
      fenced: 0,
      lateActs: 0,
      unclaimedRows: 0,
      unclaimedSockets: 0,
    });
    assert.deepEqual(report.stopMs, { n: 1, p50: 1_500, p99: 1_500, max: 1_500, limit: 8_000, late: 0 });
    assert.deepEqual(report.switchedOff, ["queue"]);
    const text = reportText(report);
    assert.match(text, /100 sent, 97 stored, 0 missing/);
    assert.match(text, /crash → next owner +1 +800 +800 +800/);
    assert.match(text, /^1 connection, 2 workers, 20 s/);
    assert.match(text, /3 messages in 1 gap of feeds that cannot replay/);
    assert.match(text, /All is well: beside the gaps above, everything sent is stored/);
    assert.match(text, /worker 1 +0 MB, 0 % of a core, replaced 0 times/);
    assert.doesNotMatch(text, /FAILED|failed|STARTs/);
  });

  it("fits into 80 columns, with no more digits than were measured", () => {
    const many = { ...messages, sent: 12_345_678, stored: 12_000_000, gaps: 5_000, gapMessages: 345_678 };
    const report = measure(facts({ audit: { messages: many, rows: [], examples: [] } }));
    const figures = { dynamodbRequests: 48.54, writeUnits: 332.66, leaseWriteUnits: 37.22, readUnits: 0.014 };
    const text = reportText({ ...report, perConnectionMinute: { ...report.perConnectionMinute, ...figures } });
    for (const line of text.split("\n")) assert.ok(line.length <= 80, line);
    const joined = text.replaceAll(/\s+/g, " ");
    assert.match(joined, /48.5 requests, 333 write units \(37.2 for leases, .*\), 0.014 read units/);
    assert.match(joined, /345,678 messages in 5,000 gaps of feeds/);
  });

  it("says that everything is stored only where there are no gaps", () => {
    const whole = { ...messages, stored: 100, gaps: 0, gapMessages: 0 };
    const text = reportText(measure(facts({ audit: { messages: whole, rows: [], examples: [] } })));
    assert.match(text, /All is well: everything sent is stored as it was sent/);
    assert.doesNotMatch(text, /gap/);
  });

  it("measures the pace of the STARTs", () => {
    const startSentAtMs = new Map([[ID, 700], ["b", 710], ["c", 720]]); // prettier-ignore
    const report = measure(facts({ startSentAtMs }));
    assert.equal(report.startsPerSecond, 100);
    assert.match(reportText(report), /STARTs were written at 100 a second/);
    assert.equal(measure(facts()).startsPerSecond, null);
  });

  it("explains functions that fail because the queue is switched off, and only those", () => {
    const functions = { reconcile: { invocations: 1, errors: 0 }, "fleet-metrics": { invocations: 3, errors: 2 } };
    const report = measure(facts({ functions }));
    const text = reportText(report).replaceAll(/\s+/g, " ");
    assert.match(text, /fleet-metrics 3 \(2 failed\); without the queue, functions that use it must fail/);
    assert.doesNotMatch(reportText({ ...report, switchedOff: [] }), /must fail/);
  });

  const failures: [what: string, change: Partial<RunFacts>, problem: RegExp][] = [
    ["something is missing", { audit: { messages: { ...messages, missing: 2 }, rows: [], examples: ["talk: gone"] } }, /^2 messages are missing$/], // prettier-ignore
    ["something is stored twice", { audit: { messages: { ...messages, duplicated: 1 }, rows: [], examples: [] } }, /stored twice/], // prettier-ignore
    ["something differs", { audit: { messages: { ...messages, differing: 1 }, rows: [], examples: [] } }, /differ/],
    ["a live feed is out of order", { audit: { messages: { ...messages, disordered: 1 }, rows: [], examples: [] } }, /out of order/], // prettier-ignore
    ["nothing at all is stored", { audit: { messages: { ...messages, stored: 0 }, rows: [], examples: [] } }, /nothing was stored/], // prettier-ignore
    ["a connection has no owner at the end", { unowned: [ID] }, /^1 connection was left without an owner$/],
    ["a connection was never opened", { connectionIds: [ID, "talk-00002"] }, /^1 connection was left/],
    ["a stopped connection kept its socket", { stopped: { closedMs: [], limitMs: 8_000, late: 1 } }, /^1 stopped connection kept its socket for more than 8,000 ms$/], // prettier-ignore
    ["a worker did not drain", { drained: false }, /drained/],
    ["a task ended by itself", { faults: [] }, /^1 task ended unasked$/],
    ["a terminated task left leases", { ended: [{ taskId: "b", slot: 1, exitCode: 3, stopCode: "UserInitiated" }] }, /ended unasked/], // prettier-ignore
  ];
  for (const [what, change, problem] of failures) {
    it(`fails when ${what}`, () => {
      const report = measure(facts(change));
      assert.equal(report.ok, false);
      assert.equal(report.problems.length, 1);
      assert.match(report.problems[0] ?? "", problem);
      assert.match(reportText(report), /FAILED\n {2}- /);
    });
  }

  it("counts a connection that no later owner ever opened as un-owned", () => {
    const report = measure(facts({}, handedOver.slice(0, 3)));
    assert.deepEqual([report.recoveryMs["crash"]?.n, report.faults[0]?.neverRecovered], [0, 1]);
    assert.equal(report.ownership.unowned, 1);
    assert.deepEqual(report.problems, ["1 connection was left without an owner"]);
    assert.match(reportText(report), /talk-00001: has no owner/);
  });

  it("counts two acting owners on the shared clock", () => {
    const early = handedOver.with(2, { ...handedOver[2]!, t: 9_990 });
    const report = measure(facts({}, early));
    assert.equal(report.ownership.doublyOwned, 1);
    assert.match(report.examples[0] ?? "", /acted at once for 13.0 ms/);
    assert.equal(measure(facts({}, handedOver.with(2, { ...handedOver[2]!, t: 10_003 }))).ownership.doublyOwned, 0);
  });

  it("fails when a row is of nobody that is known", () => {
    const rows = [{ connectionId: ID, leaseEpoch: 9, receivedAtMs: 1_010_900 }];
    const report = measure(facts({ audit: { messages, rows, examples: [] } }));
    assert.deepEqual(report.problems, ["1 stored row is of no known owner"]);
  });

  it("counts what was received outside of a lease", () => {
    const rows = [{ connectionId: ID, leaseEpoch: 1, receivedAtMs: 1_010_100 }];
    const report = measure(facts({ audit: { messages, rows, examples: [] } }));
    assert.equal(report.ownership.lateActs, 1);
    assert.match(report.problems.join(), /outside of its lease/);
  });
});
