import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { frame, plainLine } from "../../../local/view/frame.ts";
import type { Snapshot } from "../../../local/view/snapshot.ts";
import { startView, type Output } from "../../../local/view/view.ts";
import { figure, wrap } from "../../../local/view/wording.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

const snapshot: Snapshot = {
  elapsedMs: 83_400,
  phase: "speaking",
  workers: [
    { slot: 0, taskId: "0123456789abcdef", status: "RUNNING", held: 60, open: 58, restarts: 0 },
    { slot: 1, taskId: "fedcba9876543210", status: "STOPPING", held: 30, open: 30, restarts: 2 },
  ],
  started: 1100,
  open: 88,
  orphans: 1010,
  sent: 5000,
  stored: 4321,
  sentPerSecond: 1499.6,
  storedPerSecond: 1502,
  lost: 0,
  checked: 4000,
  faults: [{ kind: "crash", slot: 0, held: 75, recovered: 74, slowestMs: 1234 }],
};

function pipe() {
  const written: string[] = [];
  return { written, isTTY: false, write: (text: string) => written.push(text) };
}

/** A terminal that breaks lines anew when its width changes. The cursor stands at the begin of the line below the last. */
class Terminal implements Output {
  readonly isTTY = true;
  readonly listeners = new Set<() => void>();
  lines: string[] = [];
  text = "";
  columns: number;
  rows: number;

  constructor(columns: number, rows: number) {
    this.columns = columns;
    this.rows = rows;
  }

  on(_event: "resize", listener: () => void): void {
    this.listeners.add(listener);
  }

  off(_event: "resize", listener: () => void): void {
    this.listeners.delete(listener);
  }

  resize(columns: number, rows: number): void {
    Object.assign(this, { columns, rows });
    for (const listener of this.listeners) listener();
  }

  write(text: string): void {
    this.text += text;
    const [, up, rest] = /^(?:\x1b\[(\d+)A\r\x1b\[0J)?([^]*)$/u.exec(text.replaceAll(/\x1b\[\?25[lh]/gu, "")) ?? [];
    for (let left = Number(up ?? 0); left > 0;) {
      const line = this.lines.pop();
      assert.ok(line !== undefined, "not above the first line");
      left -= Math.max(1, Math.ceil(line.length / (this.columns || 80)));
      assert.ok(left >= 0, "not into the middle of a broken line");
    }
    if (rest === undefined || rest === "") return;
    assert.ok(rest.endsWith("\n"));
    this.lines.push(...rest.slice(0, -1).split("\n"));
  }
}

describe("the view", () => {
  it("writes plain lines where there is no terminal: no control characters, one line at a time", async () => {
    const clock = new VirtualClock();
    const out = pipe();
    const view = startView({ output: out, clock, snapshot: () => snapshot });
    await clock.advance(11_000);
    view.say("something happened");
    view.stop();
    await clock.advance(60_000);
    assert.equal(out.written.length, 3);
    assert.equal(clock.pendingTimers, 0);
    for (const text of out.written) assert.match(text, /^[^\p{Cc}]+\n$/u);
    assert.equal(
      out.written[0],
      "01:23 speaking: 88/1,100 open (60+30), 1,010 orphans, 1,500/s sent, 1,502/s stored, 4,321 of 5,000 stored, " +
        "0 lost of 4,000 looked up, last fault: crash of worker 1: 75 connections, 74 recovered, slowest so far 1.2 s\n",
    );
  });

  it("draws one picture in place on a terminal, takes it away in the end, and gives the cursor back", async () => {
    const clock = new VirtualClock();
    const terminal = new Terminal(200, 50);
    const view = startView({ output: terminal, clock, snapshot: () => snapshot });
    await clock.advance(1_000);
    assert.deepEqual(terminal.lines, frame(snapshot, { columns: 200, rows: 50 }));
    view.say("something happened");
    assert.deepEqual(terminal.lines, ["something happened", ...frame(snapshot, { columns: 200, rows: 50 })]);
    view.stop();
    view.stop();
    await clock.advance(60_000);
    assert.deepEqual(terminal.lines, ["something happened"]);
    assert.ok(terminal.text.startsWith("\x1b[?25l"));
    assert.ok(terminal.text.endsWith("\x1b[?25h"));
    assert.equal(terminal.text.split("\x1b[?25h").length, 2);
    assert.equal(terminal.listeners.size, 0);
  });

  it("leaves nothing of the old picture behind when the terminal changes its size", async () => {
    const clock = new VirtualClock();
    const terminal = new Terminal(200, 50);
    const view = startView({ output: terminal, clock, snapshot: () => snapshot });
    view.say("above");
    for (const [columns, rows] of [
      [60, 30],
      [44, 24],
      [120, 60],
      [23, 80],
      [80, 24],
    ] as const) {
      // prettier-ignore
      terminal.resize(columns, rows);
      assert.deepEqual(terminal.lines, ["above", ...frame(snapshot, { columns, rows })], `${columns}x${rows}`);
      await clock.advance(700);
    }
    view.stop();
    assert.deepEqual(terminal.lines, ["above"]);
  });

  it("shows workers, orphans, rates, losses and recoveries", () => {
    const [head, , first, second, , connections, messages, fault] = frame(snapshot, { columns: 200, rows: 50 });
    assert.match(head ?? "", /speaking/);
    assert.match(first ?? "", /worker 1 {3}01234567 {2}█{30} +60 held +58 open {2}RUNNING$/);
    assert.match(second ?? "", /worker 2 .*█{15}·{15} +30 held .*STOPPING {2}replaced 2×$/);
    assert.match(connections ?? "", /1,100 started, 88 open, 1,010 orphans/);
    assert.match(messages ?? "", /1,500\/s sent, 1,502\/s stored, 4,321 of 5,000 stored, 0 lost of 4,000 looked up/);
    assert.match(fault ?? "", /crash of worker 1: 75 connections, 74 recovered, slowest so far 1.2 s/);
    const plain = plainLine({ ...snapshot, lost: undefined, faults: [], workers: [] });
    assert.match(plain, /\(0\).*4,321 of 5,000 stored$/, "nobody has looked what is lost");
  });

  it("cuts nothing at 80x24, with all workers and long recoveries", () => {
    const fault = { kind: "freeze", slot: 15, held: 5_000, recovered: 4_999, slowestMs: 33_333 };
    const worker = snapshot.workers[1]!;
    for (const count of [1, 3, 4, 8]) {
      const workers = Array.from({ length: count }, (_, slot) => ({ ...worker, slot, held: 1_000, restarts: 12 }));
      const picture = frame({ ...snapshot, workers, faults: [fault, fault, fault] }, { columns: 80, rows: 24 });
      assert.ok(picture.length < 24);
      for (const line of picture) assert.ok(line.length < 80 && !line.includes("…"), line);
      assert.equal(picture.filter((line) => line.includes("replaced 12×")).length, count);
      assert.equal(picture.filter((line) => line.includes("slowest so far 33.3 s")).length, 3);
    }
  });

  it("leaves out the lesser parts of what does not fit, and says so of workers", () => {
    const workers = Array.from({ length: 16 }, (_, slot) => ({ ...snapshot.workers[0]!, slot, held: slot }));
    const fault = snapshot.faults[0]!;
    const faults = [1, 2, 3, 4, 5, 6].map((slot) => ({ ...fault, slot }));
    for (let columns = 1; columns < 120; columns += 1) {
      for (const rows of [1, 2, 10, 24, 40]) {
        const picture = frame({ ...snapshot, workers, faults }, { columns, rows });
        assert.ok(picture.length <= Math.max(1, rows - 1), `${columns}x${rows}`);
        for (const line of picture) assert.ok(line.length <= Math.max(1, columns - 1), line);
      }
    }
    const low = frame({ ...snapshot, workers, faults }, { columns: 80, rows: 20 }).join("\n");
    assert.match(low, /and 6 more workers, which together hold 75\n/);
    assert.match(low, /fault +crash of worker 7:/, "the newest");
    const narrow = frame(snapshot, { columns: 50, rows: 24 });
    assert.match(narrow[2] ?? "", /^worker 1 +60 held +58 open {2}RUNNING$/);
  });

  it("has words for one and for none", () => {
    const fault = { kind: "kill", slot: 0, held: 1, recovered: 0, slowestMs: 0 };
    assert.match(plainLine({ ...snapshot, orphans: 1, faults: [fault] }), /1 orphan,.*: 1 connection, 0 recovered$/);
    const recovered = { ...fault, recovered: 1, slowestMs: 900 };
    assert.match(plainLine({ ...snapshot, faults: [recovered] }), /all recovered, slowest 0.9 s$/);
    const workers = [{ ...snapshot.workers[0]!, status: "FROZEN" }];
    assert.match(plainLine({ ...snapshot, workers }), /\(60 FROZEN\)/);
  });

  it("does not know a size of 0", () => {
    const terminal = new Terminal(0, 0);
    const view = startView({ output: terminal, clock: new VirtualClock(), snapshot: () => snapshot });
    assert.deepEqual(terminal.lines, frame(snapshot, { columns: 80, rows: 24 }));
    view.stop();
  });
});

describe("wording", () => {
  it("keeps three digits, and separates thousands", () => {
    assert.deepEqual([0, 0.014, 0.2, 48.54, 332.66, 12_345.6].map(figure), ["0", "0.014", "0.2", "48.5", "333", "12,346"]); // prettier-ignore
  });

  it("breaks at spaces only", () => {
    assert.deepEqual(wrap("one two three, fourfive", 7), ["one two", "three,", "fourfive"]);
  });
});
