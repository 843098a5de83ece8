import type { Percentiles } from "../audit/percentiles.ts";
import { count, figure, whole, wrap } from "../view/wording.ts";
import type { RunReport } from "./report.ts";

const WIDTH = 80;
const LABEL_WIDTH = 16;

/** The report for people: no line longer than 80 columns but those that quote ids. `--json` has every digit. */
export function reportText(report: RunReport): string {
  const { perConnectionMinute: usage, stopMs } = report;
  const lines = [
    ...wrap(heading(report), WIDTH),
    "",
    ...labelled("messages", messagesText(report)),
    ...gapsText(report),
    ...labelled("ownership", ownershipText(report)),
    "",
    "  ms                            n      p50      p99      max",
    ...Object.entries(report.recoveryMs).map(([kind, figures]) => row(ROW_NAMES[kind] ?? kind, figures)),
    row("STOP → socket closed", stopMs),
    ...labelled("", startsText(report), 2),
    "",
    ...labelled(
      "DynamoDB",
      `for each connection and minute: ${figure(usage.dynamodbRequests)} requests, ${figure(usage.writeUnits)} write ` +
        `units (${figure(usage.leaseWriteUnits)} for leases, the rest stores the messages), ${figure(usage.readUnits)} ` +
        `read units; by the workers alone, over ${figure(usage.secondsMeasured)} s`,
    ),
    ...report.workerProcesses.flatMap(({ rssMb, cpuPercent, restarts }, at) =>
      labelled(
        `worker ${at + 1}`,
        `${figure(rssMb)} MB, ${figure(cpuPercent)} % of a core, replaced ${count(restarts, "time")}`,
      ),
    ),
    ...labelled("functions", functionsText(report)),
  ];
  if (report.switchedOff.length > 0) lines.push(...labelled("switched off", report.switchedOff.join(", ")));
  lines.push("", ...verdict(report));
  return lines.join("\n");
}

const ROW_NAMES: Readonly<Record<string, string>> = {
  start: "START → open",
  crash: "crash → next owner",
  kill: "kill → next owner",
  term: "term → next owner",
  freeze: "freeze → next owner",
};

function heading({ connections, workers, seconds, rate, seed }: RunReport): string {
  return (
    `${count(connections, "connection")}, ${count(workers, "worker")}, ${whole(seconds)} s of speech at ` +
    `${figure(rate)} messages/s (seed ${seed})`
  );
}

function messagesText({ messages }: RunReport): string {
  return list([
    [messages.sent, "sent"],
    [messages.stored, "stored"],
    [messages.missing, "missing"],
    [messages.duplicated, "duplicated"],
    [messages.differing, "differing"],
    [messages.disordered, "out of order"],
  ]);
}

function gapsText({ messages: { gaps, gapMessages } }: RunReport): string[] {
  if (gaps === 0) return [];
  return labelled(
    "gaps",
    `${count(gapMessages, "message")} in ${count(gaps, "gap")} of feeds that cannot replay: said while nobody listened, ` +
      "or to a struck worker alone",
  );
}

function ownershipText({ ownership }: RunReport): string {
  return list([
    [ownership.doublyOwned, "doubly owned"],
    [ownership.unowned, "un-owned"],
    [ownership.lateActs, ownership.lateActs === 1 ? "act outside a lease" : "acts outside a lease"],
    [ownership.fenced, ownership.fenced === 1 ? "lease fenced" : "leases fenced"],
  ]);
}

function startsText({ startsPerSecond, faults }: RunReport): string {
  const pace = startsPerSecond === null ? [] : [`STARTs were written at ${figure(startsPerSecond)} a second`];
  const meaning = faults.length === 0 ? [] : ["next owner: from the fault to its open socket"];
  return [...pace, ...meaning].join("; ");
}

function functionsText({ functions, switchedOff }: RunReport): string {
  const named = Object.entries(functions).map(
    ([name, { invocations, errors }]) => `${name} ${whole(invocations)}${errors === 0 ? "" : ` (${errors} failed)`}`,
  );
  const failed = Object.values(functions).some(({ errors }) => errors > 0);
  const expected =
    failed && switchedOff.includes("queue") ? "; without the queue, functions that use it must fail" : "";
  return named.join(", ") + expected;
}

function verdict(report: RunReport): string[] {
  if (report.ok) {
    const but = report.messages.gapMessages === 0 ? "" : "beside the gaps above, ";
    return wrap(`All is well: ${but}everything sent is stored as it was sent, and was owned exactly once.`, WIDTH);
  }
  return [
    "FAILED",
    ...report.problems.flatMap((problem) => labelled("-", problem, 4)),
    ...report.examples.map((example) => `      ${example}`),
    ...report.unexpectedEnds.map((end) => `      ${end}`),
  ];
}

function row(name: string, { n, p50, p99, max }: Percentiles): string {
  const cell = (value: number | null): string => (value === null ? "-" : whole(value)).padStart(9);
  return `  ${name.padEnd(22)}${cell(n)}${cell(p50)}${cell(p99)}${cell(max)}`;
}

function list(figures: readonly (readonly [number, string])[]): string {
  return figures.map(([value, what]) => `${whole(value)} ${what}`).join(", ");
}

/** The text behind its label, and below itself on further lines; nothing for no text. */
function labelled(label: string, text: string, indent = LABEL_WIDTH): string[] {
  if (text === "") return [];
  return wrap(text, WIDTH - indent).map((line, at) => (at === 0 ? `  ${label}` : "").padEnd(indent) + line);
}
