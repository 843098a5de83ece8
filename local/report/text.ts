import type { Percentiles } from "../audit/percentiles.ts";
import type { RunReport } from "./report.ts";

/** The report for people. */
export function reportText(report: RunReport): string {
  const { messages, ownership, perConnectionMinute: usage, stopMs } = report;
  const lines = [
    heading(report),
    "",
    "  messages      " +
      list([
        [messages.sent, "sent"],
        [messages.stored, "stored"],
        [messages.missing, "missing"],
        [messages.duplicated, "duplicated"],
        [messages.differing, "differing"],
        [messages.disordered, "out of order"],
      ]),
    `                ${number(messages.gapMessages)} of live feeds said to nobody, or to a struck worker alone (${number(messages.gaps)} gaps)`,
    "  ownership     " +
      list([
        [ownership.doublyOwned, "doubly owned"],
        [ownership.unowned, "un-owned"],
        [ownership.lateActs, "acts outside a lease"],
        [ownership.fenced, "leases fenced"],
      ]),
    "",
    "  ms                            n      p50      p99      max",
    ...Object.entries(report.recoveryMs).map(([kind, figures]) => row(ROW_NAMES[kind] ?? kind, figures)),
    row("STOP → socket closed", stopMs),
    `  (${report.startsPerSecond} STARTs were written per second; recovery: from the fault to the next owner's open socket)`,
    "",
    `  DynamoDB      ${usage.dynamodbRequests} requests, ${usage.writeUnits} write units (${usage.leaseWriteUnits} for leases), ${usage.readUnits} read units for each connection and minute`,
    `                (the workers' own, over ${usage.secondsMeasured} s; the rest of the write units stores the messages)`,
    ...report.workerProcesses.map(
      ({ rssMb, cpuPercent, restarts }, at) =>
        `  worker ${at + 1}      ${rssMb} MB, ${cpuPercent} % of a core, replaced ${restarts} ${restarts === 1 ? "time" : "times"}`,
    ),
    `  functions     ${Object.entries(report.functions)
      .map(([name, { invocations, errors }]) => `${name} ${invocations}${errors === 0 ? "" : ` (${errors} failed)`}`)
      .join(", ")}`,
  ];
  if (report.switchedOff.length > 0) lines.push(`  switched off  ${report.switchedOff.join(", ")}`);
  if (!report.ok) {
    lines.push("", "FAILED", ...report.problems.map((problem) => `  - ${problem}`));
    lines.push(...report.examples.map((example) => `      ${example}`));
    lines.push(...report.unexpectedEnds.map((end) => `      ${end}`));
  } else lines.push("", "All is well: nothing missing, nothing different, everything owned exactly once.");
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
  return `${number(connections)} connections, ${workers} workers, ${seconds} s of speech at ${number(rate)} messages/s (seed ${seed})`;
}

function row(name: string, { n, p50, p99, max }: Percentiles): string {
  const cell = (value: number | null): string => (value === null ? "-" : number(value)).padStart(9);
  return `  ${name.padEnd(22)}${cell(n)}${cell(p50)}${cell(p99)}${cell(max)}`;
}

function list(figures: readonly (readonly [number, string])[]): string {
  return figures.map(([count, what]) => `${number(count)} ${what}`).join(", ");
}

function number(value: number): string {
  return value.toLocaleString("en-US");
}
