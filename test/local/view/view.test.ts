import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { frame, plainLine } from "../../../local/view/frame.ts";
import type { Snapshot } from "../../../local/view/snapshot.ts";
import { startView } from "../../../local/view/view.ts";
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

function output(isTTY: boolean, columns?: number) {
  const written: string[] = [];
  return { written, isTTY, ...(columns === undefined ? {} : { columns }), write: (text: string) => written.push(text) };
}

describe("the view", () => {
  it("writes plain lines where there is no terminal: no control characters, one line at a time", async () => {
    const clock = new VirtualClock();
    const out = output(false);
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
      "01:23 speaking: 88/1,100 open (60+30), 1,010 orphans, 1,500/s sent, 1,502/s stored, lost = 0 of 4,000 checked, " +
        "last fault: crash of worker 1: 75 connections, 74 of 75 recovered, slowest 1.2 s\n",
    );
  });

  it("draws one picture in place on a terminal, and gives the cursor back", async () => {
    const clock = new VirtualClock();
    const out = output(true, 200);
    const view = startView({ output: out, clock, snapshot: () => snapshot });
    await clock.advance(1_000);
    view.say("something happened");
    view.stop();
    view.stop();
    await clock.advance(60_000);
    const lines = frame(snapshot, 200).length;
    const text = out.written.join("");
    const up = `\x1b[${lines}A\r\x1b[0J`;
    assert.ok(text.startsWith("\x1b[?25l"));
    assert.ok(text.endsWith("\x1b[?25h"));
    assert.equal(text.split("\x1b[?25h").length, 2);
    // Drawn at 0, 500 and 1000 ms, again below the line that was said, and at the end.
    assert.equal(text.split("ws-fleet  01:23").length - 1, 5);
    assert.equal(text.split(up).length - 1, 4);
    assert.ok(text.includes(`${up}something happened\n`));
  });

  it("shows workers, orphans, rates, losses and recoveries, in no line longer than the terminal", () => {
    const [head, , first, second, , connections, messages, fault] = frame(snapshot, 200);
    assert.match(head ?? "", /speaking/);
    assert.match(first ?? "", /worker 1 {2}01234567 {2}█{30} +60 held +58 open {2}RUNNING$/);
    assert.match(second ?? "", /worker 2 .*█{15}·{15} +30 held .*STOPPING {2}replaced 2×$/);
    assert.match(connections ?? "", /1,100 started +88 open +1,010 orphans/);
    assert.match(messages ?? "", /1,500\/s sent +1,502\/s stored +4,321 stored in all +lost = 0/);
    assert.match(fault ?? "", /crash of worker 1: 75 connections, 74 of 75 recovered, slowest 1.2 s/);
    assert.ok(frame(snapshot, 40).every((line) => line.length < 40));
    assert.match(
      plainLine({ ...snapshot, lost: undefined, faults: [], workers: [] }),
      /\(0\).*lost: audited at the end$/,
    );
  });

  it("does not know a width of 0", async () => {
    const out = output(true, 0);
    const view = startView({ output: out, clock: new VirtualClock(), snapshot: () => snapshot });
    view.stop();
    assert.ok(out.written.join("").includes("88 open"));
    await Promise.resolve();
  });
});
