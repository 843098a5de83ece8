import type { FaultSnapshot, Snapshot, WorkerSnapshot } from "./snapshot.ts";

const BAR_WIDTH = 30;
const SHOWN_FAULTS = 5;

/** The lines of one picture of the fleet, none longer than the width. */
export function frame(snapshot: Snapshot, width: number): string[] {
  const { workers, faults } = snapshot;
  const most = Math.max(1, ...workers.map(({ held }) => held));
  const lines = [
    `ws-fleet  ${clock(snapshot.elapsedMs)}  ${snapshot.phase}`,
    "",
    ...workers.map((worker) => workerLine(worker, most)),
    "",
    `connections  ${number(snapshot.started)} started   ${number(snapshot.open)} open   ${number(snapshot.orphans)} orphans`,
    `messages     ${number(snapshot.sentPerSecond)}/s sent   ${number(snapshot.storedPerSecond)}/s stored   ${number(snapshot.stored)} stored in all   ${lostText(snapshot)}`,
    ...faults.slice(-SHOWN_FAULTS).map((fault) => `fault        ${faultText(fault)}`),
  ];
  return lines.map((line) => line.slice(0, Math.max(1, width - 1)));
}

/** The same on one line, for logs and pipes. */
export function plainLine(snapshot: Snapshot): string {
  const held = snapshot.workers.map(({ held: count }) => count).join("+");
  const fault = snapshot.faults.at(-1);
  return [
    `${clock(snapshot.elapsedMs)} ${snapshot.phase}:`,
    `${number(snapshot.open)}/${number(snapshot.started)} open (${held === "" ? "0" : held}),`,
    `${number(snapshot.orphans)} orphans,`,
    `${number(snapshot.sentPerSecond)}/s sent, ${number(snapshot.storedPerSecond)}/s stored,`,
    lostText(snapshot) + (fault === undefined ? "" : `, last fault: ${faultText(fault)}`),
  ].join(" ");
}

function workerLine({ slot, taskId, status, held, open, restarts }: WorkerSnapshot, most: number): string {
  const bar = "█".repeat(Math.round((BAR_WIDTH * held) / most)).padEnd(BAR_WIDTH, "·");
  const replaced = restarts === 0 ? "" : `  replaced ${restarts}×`;
  return `worker ${slot + 1}  ${taskId.slice(0, 8)}  ${bar} ${number(held).padStart(5)} held ${number(open).padStart(5)} open  ${status}${replaced}`;
}

function faultText({ kind, slot, held, recovered, slowestMs }: FaultSnapshot): string {
  const state = recovered >= held ? "all recovered" : `${recovered} of ${held} recovered`;
  return `${kind} of worker ${slot + 1}: ${held} connections, ${state}, slowest ${(slowestMs / 1000).toFixed(1)} s`;
}

function lostText({ lost, checked }: Snapshot): string {
  return lost === undefined ? "lost: audited at the end" : `lost = ${number(lost)} of ${number(checked)} checked`;
}

function clock(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${String(Math.floor(seconds / 60)).padStart(2, "0")}:${String(seconds % 60).padStart(2, "0")}`;
}

function number(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
