import type { FaultSnapshot, Snapshot, WorkerSnapshot } from "./snapshot.ts";
import { count, cut, seconds, whole, wrapParts } from "./wording.ts";

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

const LABEL_WIDTH = 13;
const MAX_BAR = 30;
/** A bar that is shorter shows nothing. */
const MIN_BAR = 5;
const MAX_FAULTS = 5;

/**
 * The lines of one picture of the fleet: none so long that the terminal breaks it, and at least one fewer than its rows.
 * What does not fit is left out from its least part on: task ids, bars, older faults, then workers.
 */
export function frame(snapshot: Snapshot, { columns, rows }: Size): string[] {
  // The last column stays free: some terminals break a line that fills it.
  const width = Math.max(1, columns - 1);
  const head = [`ws-fleet  ${clock(snapshot.elapsedMs)}  ${snapshot.phase}`, ""];
  const figures = ["", ...labelled("connections", connectionsParts(snapshot), width)];
  figures.push(...labelled("messages", messagesParts(snapshot), width));
  const room = rows - 1 - head.length - figures.length;
  const workers = workerLines(snapshot.workers, width, Math.max(2, room - (snapshot.faults.length > 0 ? 2 : 0)));
  const faults = faultLines(snapshot.faults, width, Math.max(0, room - workers.length));
  return [...head, ...workers, ...figures, ...faults].slice(0, Math.max(1, rows - 1)).map((line) => cut(line, width));
}

/** The same on one line, for logs and pipes. */
export function plainLine(snapshot: Snapshot): string {
  const held = snapshot.workers.map(({ held: n, status }) => (status === "FROZEN" ? `${n} FROZEN` : `${n}`)).join("+");
  const fault = snapshot.faults.at(-1);
  return [
    `${clock(snapshot.elapsedMs)} ${snapshot.phase}:`,
    `${whole(snapshot.open)}/${whole(snapshot.started)} open (${held === "" ? "0" : held}),`,
    `${count(snapshot.orphans, "orphan")},`,
    messagesParts(snapshot).join(", ") + (fault === undefined ? "" : `, last fault: ${faultParts(fault).join(", ")}`),
  ].join(" ");
}

function workerLines(workers: readonly WorkerSnapshot[], width: number, room: number): string[] {
  const shown = workers.length <= room ? workers : workers.slice(0, room - 1);
  const facts = shown.map(({ held, open, status, restarts }) => {
    const replaced = restarts === 0 ? "" : `  replaced ${restarts}×`;
    return `${whole(held).padStart(5)} held ${whole(open).padStart(5)} open  ${status}${replaced}`;
  });
  const longest = Math.max(0, ...facts.map(({ length }) => length));
  const left = width - "worker 16  ".length - longest;
  const withId = left - "01234567  ".length - 1 >= MIN_BAR;
  const bar = Math.min(MAX_BAR, left - 1 - (withId ? "01234567  ".length : 0));
  const most = Math.max(1, ...workers.map(({ held }) => held));
  const lines = shown.map(({ slot, taskId, held }, at) =>
    [
      `worker ${slot + 1}`.padEnd("worker 16  ".length),
      withId ? `${taskId.slice(0, 8)}  ` : "",
      bar < MIN_BAR ? "" : `${"█".repeat(Math.round((bar * held) / most)).padEnd(bar, "·")} `,
      facts[at],
    ].join(""),
  );
  const hidden = workers.slice(shown.length);
  if (hidden.length === 0) return lines;
  const held = hidden.reduce((sum, worker) => sum + worker.held, 0);
  return [...lines, `and ${count(hidden.length, "more worker")}, which together hold ${whole(held)}`];
}

/** The newest ones that fit, oldest first. */
function faultLines(faults: readonly FaultSnapshot[], width: number, room: number): string[] {
  let lines: string[] = [];
  for (const fault of faults.slice(-MAX_FAULTS).reverse()) {
    const own = labelled("fault", faultParts(fault), width);
    if (lines.length + own.length > room) break;
    lines = [...own, ...lines];
  }
  return lines;
}

/** The text beside its label, on as many lines as it needs; below it where there is no room beside it. */
function labelled(label: string, parts: readonly string[], width: number): string[] {
  const beside = width >= 3 * LABEL_WIDTH;
  const lines = wrapParts(parts, beside ? width - LABEL_WIDTH : width);
  return lines.map((line, at) => (beside ? (at === 0 ? label : "").padEnd(LABEL_WIDTH) + line : line));
}

function connectionsParts({ started, open, orphans }: Snapshot): string[] {
  return [`${whole(started)} started`, `${whole(open)} open`, count(orphans, "orphan")];
}

/** Nothing of losses where nobody has looked: the demo compares everything when the speech is over. */
function messagesParts({ sent, stored, sentPerSecond, storedPerSecond, lost, checked }: Snapshot): string[] {
  return [
    `${whole(sentPerSecond)}/s sent`,
    `${whole(storedPerSecond)}/s stored`,
    `${whole(stored)} of ${whole(sent)} stored`,
    ...(lost === undefined ? [] : [`${whole(lost)} lost of ${whole(checked)} looked up`]),
  ];
}

function faultParts({ kind, slot, held, recovered, slowestMs }: FaultSnapshot): string[] {
  const all = recovered >= held;
  return [
    `${kind} of worker ${slot + 1}: ${count(held, "connection")}`,
    all ? "all recovered" : `${whole(recovered)} recovered`,
    ...(recovered === 0 ? [] : [`${all ? "slowest" : "slowest so far"} ${seconds(slowestMs)}`]),
  ];
}

function clock(ms: number): string {
  const total = Math.floor(ms / 1000);
  return `${String(Math.floor(total / 60)).padStart(2, "0")}:${String(total % 60).padStart(2, "0")}`;
}
