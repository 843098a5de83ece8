import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compareLive, type LiveComparison } from "../../../local/audit/compare-live.ts";
import { holdingsOf, type Death } from "../../../local/audit/holdings.ts";
import type { JournalLine, UsageLine } from "../../../local/audit/journal.ts";
import { chaosExcuses, couldNotDrain, unexplainedFences } from "../../../local/chaos/excuses.ts";
import type { PlayedChaos } from "../../../local/chaos/player.ts";
import type { LinkRecord } from "../../../local/chaos/proxy/link.ts";
import { withLinks } from "../../../local/chaos/witness.ts";
import type { PlayedFault } from "../../../local/run/fault-player.ts";
import type { SocketRecord } from "../../../local/upstream/record.ts";
import { liveRecord, liveRows, range, socket, transcriptOf } from "../helpers/rows.ts";

/** Twenty segments, one every 100 ms from 0. */
const transcript = transcriptOf("live");
const ID = transcript.connectionId;
const PORT = 50_001;

function link(fields: Partial<LinkRecord> = {}): LinkRecord {
  return {
    clientPort: PORT,
    openedAtMs: 0,
    serverPort: 40_001,
    frames: [],
    lostFromMs: undefined,
    brokenAtMs: undefined,
    ...fields,
  };
}

function line(event: JournalLine["event"], t: number, fields: Partial<JournalLine> = {}): JournalLine {
  return { t, task: "a", connectionId: ID, epoch: 1, event, ...fields };
}

const HELD = [line("held", 0, { deadline: 17_000 }), line("open", 1, { localPort: PORT })];

interface Case {
  readonly links?: readonly LinkRecord[];
  readonly sockets?: readonly SocketRecord[];
  readonly journal?: readonly JournalLine[];
  readonly played?: readonly PlayedChaos[];
  readonly deaths?: readonly Death[];
  readonly usage?: readonly UsageLine[];
  readonly usageOf?: string;
  readonly stored: Iterable<number>;
}

/** What the audit says of a worker that stored these segments. */
function audit(given: Case): LiveComparison {
  const { links = [link()], sockets, journal = HELD, played = [], deaths = [], stored } = given;
  const { usage = [], usageOf = "a" } = given;
  const record = liveRecord(transcript, sockets ?? [socket({ socket: 1, openedAtMs: 0, closedAtMs: 2_000 })]);
  const evidence = withLinks(
    {
      journal,
      usage: [{ taskId: usageOf, slot: 0, usage }],
      deaths,
      holdings: Map.groupBy(holdingsOf(journal, deaths), ({ connectionId }) => connectionId),
      records: new Map([[ID, record]]),
      sockets: new Map([[ID, record.sockets]]),
    },
    links,
  );
  return compareLive({
    transcript,
    record: evidence.records.get(ID) ?? record,
    rows: liveRows(transcript, 1, stored),
    faults: chaosExcuses(played, evidence),
    graceMs: 1_000,
  });
}

function struck(kind: PlayedFault["kind"], atMs: number, fields: Partial<PlayedFault> = {}): PlayedChaos {
  const fault = { kind, task: "a", slot: 0, atMs, held: new Map([[ID, 1]]), recoveredMs: new Map(), ...fields };
  return {
    planned: { id: 1, does: "process", kind, rank: 0, atMs, forMs: 0 },
    slot: 0,
    atMs,
    endedAtMs: atMs,
    struck: fault,
  };
}

/** What the worker noted at `t`: its oldest message that was not stored had come so long before. */
function usage(t: number, oldestPendingMs: number): UsageLine {
  const nothing = { requests: 0, readUnits: 0, writeUnits: 0, leaseWriteUnits: 0, rssBytes: 0, cpuMs: 0 };
  return { t, ...nothing, oldestPendingMs };
}

function outage(at: "dynamodb" | "sqs" | "upstream", fromMs: number, toMs: number, slot = 0): PlayedChaos {
  const place = at === "upstream" ? { at, share: 1 } : { at, rank: 0 };
  const effect = { kind: "black-hole", direction: "both" } as const;
  return {
    planned: { id: 2, does: "network", effect, place, atMs: fromMs, forMs: toMs - fromMs },
    ...(at === "upstream" ? {} : { slot }),
    atMs: fromMs,
    endedAtMs: toMs,
  };
}

describe("what excuses a gap", () => {
  it("is not that there was a fault of the network", () => {
    for (const at of ["dynamodb", "sqs", "upstream"] as const) {
      const result = audit({ stored: range(0, 15), played: [outage(at, 0, 10_000)] });
      assert.deepEqual([result.missing, result.gapSegments], [5, 0], at);
    }
  });

  it("is what the proxy saw lost, from then on, and nothing before", () => {
    const links = [link({ lostFromMs: 1_500 })];
    assert.deepEqual(audit({ links, stored: range(0, 15) }).missing, 0);
    // Noted up to 250 ms apart: 13 and 14 may be among what was lost, 12 was said at 1,200.
    assert.deepEqual(audit({ links, stored: range(0, 13) }).missing, 0);
    assert.deepEqual(audit({ links, stored: range(0, 12) }).missing, 1);
  });

  it("is never a hole before what came through the same socket", () => {
    const links = [link({ lostFromMs: 0 })];
    assert.deepEqual(audit({ links, stored: [...range(0, 5), ...range(7, 20)] }).missing, 2);
  });

  it("is what a broken connection took along, a second before the break at most", () => {
    const links = [link({ brokenAtMs: 1_950 })];
    assert.deepEqual(audit({ links, stored: range(0, 10) }).missing, 0);
    assert.deepEqual(audit({ links, stored: range(0, 9) }).missing, 1);
  });

  it("is the loss of this socket, not of another one on the same port", () => {
    const sockets = [
      socket({ socket: 1, openedAtMs: 0, closedAtMs: 1_000 }),
      socket({ socket: 2, openedAtMs: 1_000, closedAtMs: 2_000, remotePort: 40_001 }),
    ];
    const links = [link(), link({ openedAtMs: 999, lostFromMs: 1_700 })];
    const stored = [...range(0, 5), ...range(10, 17)];
    assert.deepEqual(audit({ sockets, links, stored }).missing, 5, "segments 5 to 9 went to the first socket");
  });

  it("is what came after the worker's own deadline, when it was fenced", () => {
    const journal = [line("held", 0, { deadline: 1_200 }), line("open", 1, { localPort: PORT }), line("fenced", 1_400)];
    assert.deepEqual(audit({ journal, stored: range(0, 12) }).missing, 0);
    assert.deepEqual(audit({ journal, stored: range(0, 9) }).missing, 1, "segment 9 came well before the deadline");
    const released = [...HELD, line("released", 1_200)];
    assert.deepEqual(audit({ journal: released, stored: range(0, 12) }).missing, 8);
  });

  it("is what a killed worker had itself noted as not stored yet, and nothing older", () => {
    const stored: number[] = [];
    const kill = struck("kill", 2_000);
    assert.deepEqual(audit({ stored, played: [kill] }).missing, 10, "a second of it is excused by the kill alone");
    assert.deepEqual(audit({ stored, played: [kill], usage: [usage(1_800, 1_800)] }).missing, 0);
    assert.deepEqual(audit({ stored, played: [kill], usage: [usage(1_800, 1_200)] }).missing, 4, "600, less the slack");
    assert.deepEqual(audit({ stored, played: [kill], usage: [usage(2_100, 2_100)] }).missing, 10, "noted too late");
    const others = [usage(1_800, 1_800)];
    assert.deepEqual(audit({ stored, played: [kill], usage: others, usageOf: "b" }).missing, 10, "another's backlog");
  });

  it("is a backlog of more than a few seconds only where the way to the store was disturbed", () => {
    const stored: number[] = [];
    const kill = struck("kill", 2_000);
    const old = [usage(1_800, 9_000)];
    const missing = (...more: PlayedChaos[]): number => audit({ stored, played: [kill, ...more], usage: old }).missing;
    assert.equal(missing(), 10);
    assert.equal(missing(outage("dynamodb", 0, 2_500)), 0);
    assert.equal(missing(outage("dynamodb", 0, 2_500, 1)), 10, "another's way");
    assert.equal(missing(outage("sqs", 0, 2_500)), 10, "not the store");
    assert.equal(missing(outage("dynamodb", 1_900, 2_500)), 10, "after it was noted");
  });

  it("is what a terminated worker had to leave behind at its end", () => {
    const stored: number[] = [];
    const term = struck("term", 1_000);
    const noted = [usage(1_900, 1_900)];
    assert.deepEqual(audit({ stored, played: [term], usage: noted }).missing, 20, "it still drains");
    const deaths = [{ task: "a", atMs: 2_000 }];
    assert.deepEqual(audit({ stored, deaths, played: [term], usage: noted }).missing, 0);
    assert.deepEqual(audit({ stored, deaths, played: [term] }).missing, 20);
  });

  it("is a socket that its worker never learned of, because it was struck while it dialled", () => {
    const journal = [line("held", 0, { deadline: 17_000 })];
    const frozen = struck("freeze", 10, { thawedAtMs: 30_000 });
    assert.deepEqual(audit({ journal, stored: [], played: [frozen] }).missing, 0);
    assert.deepEqual(audit({ journal, stored: [] }).missing, 20);
    const elsewhere = struck("freeze", 10, { task: "b", thawedAtMs: 30_000 });
    assert.deepEqual(audit({ journal, stored: [], played: [elsewhere] }).missing, 20);
  });

  it("is what was on its way when the upstream cut the socket", () => {
    const sockets = [socket({ socket: 1, openedAtMs: 0, closedAtMs: 1_950, cut: "fault" })];
    assert.deepEqual(audit({ sockets, stored: range(0, 10) }).missing, 0);
    assert.deepEqual(audit({ sockets, stored: range(0, 9) }).missing, 1);
  });
});

describe("a socket that did not come through the proxy", () => {
  it("is an error: nobody could judge it", () => {
    assert.throws(
      () => audit({ links: [link({ serverPort: 1 })], stored: [] }),
      /socket 1 did not come through the proxy/,
    );
  });
});

describe("a fenced lease", () => {
  const fenced = [line("fenced", 30_000)];
  const slots = new Map([["a", 0]]);
  const unexplained = (...played: PlayedChaos[]): number => unexplainedFences(fenced, played, slots, 20_000).length;

  it("is explained by a freeze or a disturbed way to the store within the lease before, of this worker alone", () => {
    assert.equal(unexplained(), 1);
    assert.equal(unexplained(outage("dynamodb", 12_000, 28_000)), 0);
    assert.equal(unexplained(outage("dynamodb", 0, 9_000)), 1, "over for longer than a lease");
    assert.equal(unexplained(outage("dynamodb", 31_000, 40_000)), 1, "not yet");
    assert.equal(unexplained(outage("dynamodb", 12_000, 28_000, 1)), 1);
    assert.equal(unexplained(outage("sqs", 12_000, 28_000)), 1);
    assert.equal(unexplained(outage("upstream", 12_000, 28_000)), 1);
    assert.equal(unexplained(struck("freeze", 10_000, { thawedAtMs: 29_000 })), 0);
    assert.equal(unexplained(struck("freeze", 10_000, { thawedAtMs: 29_000, task: "b" })), 1);
  });
});

describe("a terminated task that says it left leases", () => {
  const term = struck("term", 50_000);
  const excused = (exitCode: number, ...others: PlayedChaos[]): boolean =>
    couldNotDrain({ task: { taskId: "a", slot: 0, exitCode }, atMs: 52_000 }, [term, ...others], 20_000);

  it("is excused where its way to the store was disturbed while it drained or within a lease before, and by nothing else", () => {
    assert.equal(excused(3), false);
    assert.equal(excused(3, outage("dynamodb", 49_000, 60_000)), true);
    assert.equal(excused(3, outage("dynamodb", 10_000, 31_000)), true, "an acquire may have lost its answer then");
    assert.equal(excused(3, outage("dynamodb", 10_000, 29_000)), false, "what that left has expired");
    assert.equal(excused(3, outage("dynamodb", 53_000, 60_000)), false, "not yet");
    assert.equal(excused(3, outage("dynamodb", 49_000, 60_000, 1)), false, "another's way");
    assert.equal(excused(3, outage("sqs", 49_000, 60_000)), false);
    assert.equal(excused(1, outage("dynamodb", 49_000, 60_000)), false, "a crash is no drain");
    const unasked = couldNotDrain(
      { task: { taskId: "b", slot: 0, exitCode: 3 }, atMs: 52_000 },
      [term, outage("dynamodb", 49_000, 60_000)],
      20_000,
    );
    assert.equal(unasked, false, "nobody asked it to end");
  });
});
