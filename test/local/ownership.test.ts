import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, it } from "node:test";
import { parseJournal, readJournal } from "../../local/audit/journal.ts";
import type { JournalEvent, JournalLine } from "../../local/audit/journal.ts";
import { checkOwnership } from "../../local/audit/ownership.ts";
import type { OwnershipInput, OwnershipResult } from "../../local/audit/ownership.ts";
import { socket } from "./helpers/rows.ts";

const ID = "talk-00001";
const WALL = 1_700_000_000_000;

function line(
  task: string,
  epoch: number,
  t: number,
  event: JournalEvent,
  extra: Partial<JournalLine> = {},
): JournalLine {
  return { t, task, connectionId: ID, epoch, event, ...extra };
}

function check(journal: readonly JournalLine[], rest: Partial<OwnershipInput> = {}): OwnershipResult {
  return checkOwnership({ journal, deaths: [], sockets: [], rows: [], wallMinusHostMs: WALL, ...rest });
}

const rowAt = (
  leaseEpoch: number,
  atMs: number,
): { connectionId: string; leaseEpoch: number; receivedAtMs: number } => ({
  connectionId: ID,
  leaseEpoch,
  receivedAtMs: WALL + atMs,
});

const a = { task: "a", epoch: 1 };
const b = { task: "b", epoch: 2 };
const clean = {
  holdings: 2,
  overlaps: [],
  lateActs: [],
  sharedEpochs: [],
  fenced: 0,
  unclaimedSockets: 0,
  unclaimedRows: 0,
} satisfies OwnershipResult;

describe("checkOwnership: time", () => {
  const held = [line("a", 1, 0, "held", { deadline: 17_000 }), line("b", 2, 12_000, "held", { deadline: 29_000 })];
  const overlap = { connectionId: ID, a, b };

  it("finds two holdings inside their deadlines at once", () => {
    assert.deepEqual(check(held).overlaps, [{ ...overlap, fromMs: 12_000, toMs: 17_000 }]);
  });

  it("extends a holding by its renewals", () => {
    const renewed = [line("a", 1, 0, "held", { deadline: 8000 }), line("a", 1, 5000, "renewed", { deadline: 13_000 }), held[1]!]; // prettier-ignore
    assert.deepEqual(check(renewed).overlaps, [{ ...overlap, fromMs: 12_000, toMs: 13_000 }]);
  });

  for (const event of ["released", "parked", "lost", "fenced"] as const) {
    it(`ends a holding with '${event}'`, () => {
      const result = check([...held, line("a", 1, 11_000, event)]);
      assert.deepEqual(result, { ...clean, fenced: event === "fenced" ? 1 : 0 });
      assert.equal(check([...held, line("a", 1, 12_500, event)]).overlaps[0]?.toMs, 12_500);
      assert.equal(check([...held, line("a", 1, 18_000, event)]).overlaps[0]?.toMs, 17_000);
    });
  }

  it("ends a holding with the death of its process, and with its deadline when it writes no more", () => {
    assert.deepEqual(check(held, { deaths: [{ task: "a", atMs: 11_999 }] }), clean);
    assert.equal(check(held, { deaths: [{ task: "b", atMs: 14_000 }] }).overlaps[0]?.toMs, 14_000);
    assert.deepEqual(check([line("a", 1, 0, "held", { deadline: 12_000 }), held[1]!]), clean);
  });

  it("does not act between a deadline and a renewal that was answered later", () => {
    const journal = [
      line("a", 1, 0, "held", { deadline: 5000 }),
      line("a", 1, 9000, "renewed", { deadline: 10_000 }),
      line("b", 2, 6000, "held", { deadline: 8000 }),
    ];
    assert.deepEqual(check(journal), clean);
    const later = journal.with(2, line("b", 2, 6000, "held", { deadline: 9500 }));
    assert.deepEqual(check(later).overlaps, [{ ...overlap, fromMs: 9000, toMs: 9500 }]);
  });

  it("takes one task under two epochs for two holdings, and connections apart", () => {
    const own = [line("a", 1, 0, "held", { deadline: 5000 }), line("a", 2, 4000, "held", { deadline: 9000 })];
    assert.equal(check(own).overlaps.length, 1);
    assert.deepEqual(check([own[0]!, { ...own[1]!, connectionId: "talk-00002" }]), clean);
  });

  it("finds an epoch that two tasks held one after the other", () => {
    const journal = [line("a", 1, 0, "held", { deadline: 5000 }), line("b", 1, 6000, "held", { deadline: 9000 })];
    assert.deepEqual(check(journal), { ...clean, sharedEpochs: [`${ID} 1`] });
  });

  it("reads the lines in the order of time, not of the input", () => {
    assert.deepEqual(check([line("a", 1, 11_000, "released"), ...held]), clean);
  });
});

describe("checkOwnership: acts", () => {
  const journal = [
    line("a", 1, 1000, "held", { deadline: 10_000 }),
    line("a", 1, 1100, "open", { localPort: 40_001 }),
    line("b", 2, 14_000, "held", { deadline: 30_000 }),
    line("b", 2, 14_100, "open", { localPort: 40_002 }),
  ];
  const frames = (atMs: number, kind: "pong" | "text" = "pong"): Pick<OwnershipInput, "sockets"> => ({
    sockets: [socket({ socket: 1, openedAtMs: 1090, frames: [{ kind, atMs }] })],
  });

  it("accepts frames and rows inside the holding, and a frame that was under way", () => {
    assert.deepEqual(check(journal, { ...frames(9900), rows: [rowAt(1, 9999), rowAt(2, 14_000)] }), clean);
    assert.deepEqual(check(journal, frames(10_200)), clean);
  });

  it("reports a frame sent after the deadline", () => {
    const result = check(journal, frames(12_000, "text"));
    assert.deepEqual(result.lateActs, [{ connectionId: ID, ...a, act: "frame", detail: "text", atMs: 11_750 }]);
    assert.deepEqual(result.overlaps, []);
  });

  it("reports a row received after the deadline", () => {
    const result = check(journal, { rows: [rowAt(1, 10_050)] });
    assert.deepEqual(
      result.lateActs.map(({ act, task, atMs }) => ({ act, task, atMs })),
      [{ act: "row", task: "a", atMs: 10_045 }],
    );
  });

  it("makes an overlap of a late act that reaches into the next holding", () => {
    const byFrame = check(journal, { ...frames(15_000), frameSlackMs: 100 });
    assert.deepEqual(byFrame.overlaps, [{ connectionId: ID, a, b, fromMs: 14_000, toMs: 14_900 }]);
    const byRow = check(journal, { rows: [rowAt(1, 16_000)], rowSlackMs: 0 });
    assert.deepEqual(byRow.overlaps, [{ connectionId: ID, a, b, fromMs: 14_000, toMs: 16_000 }]);
    assert.equal(byRow.lateActs.length, 1);
  });

  it("reports a frame before the lease was held", () => {
    const sockets = [socket({ socket: 2, openedAtMs: 13_000, frames: [{ kind: "text", atMs: 13_500 }] })];
    const result = check(journal.with(0, line("a", 1, 1000, "held", { deadline: 13_600 })), { sockets });
    assert.deepEqual(result.overlaps, [{ connectionId: ID, a, b, fromMs: 13_500, toMs: 13_600 }]);
    assert.deepEqual(result.lateActs.map(({ task, act }) => [task, act]), [["b", "frame"]]); // prettier-ignore
  });

  it("matches a port that was used again to the report nearest in time", () => {
    const again = [...journal, line("b", 2, 20_000, "open", { localPort: 40_001 })];
    const sockets = [
      socket({ socket: 1, openedAtMs: 1090, frames: [{ kind: "pong", atMs: 5000 }] }),
      socket({ socket: 9, remotePort: 40_001, openedAtMs: 19_990, frames: [{ kind: "pong", atMs: 25_000 }] }),
    ];
    assert.deepEqual(check(again, { sockets }), clean);
  });

  it("counts what no journal claims instead of judging it", () => {
    const sockets = [
      socket({ socket: 7, openedAtMs: 2000, frames: [{ kind: "pong", atMs: 50_000 }] }),
      socket({ socket: 8, openedAtMs: 2000 }),
    ];
    assert.deepEqual(check(journal, { sockets, rows: [rowAt(3, 50_000)] }), {
      ...clean,
      unclaimedSockets: 1,
      unclaimedRows: 1,
    });
  });
});

describe("the journal", () => {
  const whole = [
    line("a", 1, 1.5, "held", { deadline: 17_000 }),
    line("a", 1, 2, "open", { localPort: 40_001 }),
    line("a", 1, 3, "released"),
  ];
  const usage = {
    t: 2.5,
    requests: 7,
    readUnits: 0.5,
    writeUnits: 12,
    leaseWriteUnits: 3,
    rssBytes: 90_000_000,
    cpuMs: 850.5,
    oldestPendingMs: 12.5,
  };
  const written = [...whole.slice(0, 2), { ...usage, event: "usage" }, whole[2]!];
  const text = written.map((one) => `${JSON.stringify(one)}\n`).join("");

  it("is read from its file, whatever of the last line a killed worker has left", async () => {
    const folder = await mkdtemp(path.join(tmpdir(), "ws-fleet-journal-"));
    const file = path.join(folder, "a.ndjson");
    try {
      await writeFile(file, text);
      assert.deepEqual(await readJournal(file), { lines: whole, usage: [{ ...usage, event: "usage" }] });
    } finally {
      await rm(folder, { recursive: true });
    }
    const last = JSON.stringify(whole[2]).length;
    for (let left = 0; left <= last; left += 1) {
      const torn = text.slice(0, text.length - 1 - last + left);
      const { lines } = parseJournal(torn);
      assert.deepEqual(lines, left === last ? whole : whole.slice(0, 2), `${left} characters are left`);
    }
  });

  it("is refused when any other line is wrong, naming line, field and rule", () => {
    const refused: [object | string, RegExp][] = [
      ["{", /journal:1: not JSON: \{/],
      [[], /t must be a number/],
      ["null", /must be an object/],
      [{ ...whole[0], t: "1" }, /journal:1: t must be a number, got "1"/],
      [{ ...whole[0], task: "" }, /task must be a non-empty string/],
      [{ ...whole[0], connectionId: 5 }, /connectionId must be a non-empty string/],
      [{ ...whole[0], epoch: 1.5 }, /epoch must be a whole number, got 1.5/],
      [{ ...whole[0], event: "took" }, /event must be one of held, renewed/],
      [{ ...whole[0], deadline: undefined }, /deadline must be a number, got undefined/],
      [{ ...whole[1], localPort: "x" }, /localPort must be a port number/],
      [{ ...usage, event: "usage", cpuMs: undefined }, /cpuMs must be a number, got undefined/],
    ];
    for (const [wrong, message] of refused) {
      const first = typeof wrong === "string" ? wrong : JSON.stringify(wrong);
      assert.throws(() => parseJournal(`${first}\n${text}`), { message });
    }
  });
});
