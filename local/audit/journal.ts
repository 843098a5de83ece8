import { readFile } from "node:fs/promises";

const EVENTS = ["held", "renewed", "released", "parked", "lost", "fenced", "open", "closed"] as const;
export type JournalEvent = (typeof EVENTS)[number];

/** One ownership event of a worker. Times are host clock milliseconds. */
export interface JournalLine {
  readonly t: number;
  readonly task: string;
  readonly connectionId: string;
  readonly epoch: number;
  readonly event: JournalEvent;
  /** Local deadline; on `held` and `renewed`. */
  readonly deadline?: number;
  /** Local port of the socket; on `open` and `closed`. */
  readonly localPort?: number;
}

/** Counters of a worker's process, each since its start. `t` is host clock milliseconds. */
export interface UsageLine {
  readonly t: number;
  /** DynamoDB requests, each attempt counted, and the units that the answers told of. */
  readonly requests: number;
  readonly readUnits: number;
  readonly writeUnits: number;
  /** The share of lease operations. */
  readonly leaseWriteUnits: number;
  readonly rssBytes: number;
  /** Processor time, user and system. */
  readonly cpuMs: number;
  /** Age of the oldest message that was received and not stored; 0 without any. */
  readonly oldestPendingMs: number;
}

const USAGE_FIELDS = [
  "t",
  "requests",
  "readUnits",
  "writeUnits",
  "leaseWriteUnits",
  "rssBytes",
  "cpuMs",
  "oldestPendingMs",
] as const;

/** What a journal holds, each kind in the order in which it was written. */
export interface Journal {
  readonly lines: readonly JournalLine[];
  readonly usage: readonly UsageLine[];
}

/**
 * Reads a worker's journal, one JSON object a line. A last line without its line feed is what a killed worker leaves:
 * it is dropped when it cannot be read.
 *
 * @throws if any other line is not a journal line; the message names file, line and rule
 */
export async function readJournal(path: string): Promise<Journal> {
  return parseJournal(await readFile(path, "utf8"), path);
}

export function parseJournal(text: string, name = "journal"): Journal {
  const lines: JournalLine[] = [];
  const usage: UsageLine[] = [];
  const take = (line: string, where: string): void => {
    const parsed = parseLine(line, where);
    if (parsed.event === "usage") usage.push(parsed);
    else lines.push(parsed);
  };
  const whole = text.split("\n");
  const torn = whole.pop() ?? "";
  for (const [at, line] of whole.entries()) if (line !== "") take(line, `${name}:${at + 1}`);
  if (torn !== "") {
    try {
      take(torn, name);
    } catch {
      // Torn in the middle: the worker died while writing it.
    }
  }
  return { lines, usage };
}

function parseLine(line: string, where: string): JournalLine | (UsageLine & { readonly event: "usage" }) {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new Error(`${where}: not JSON: ${line.slice(0, 80)}`);
  }
  if (typeof value !== "object" || value === null) throw new Error(`${where}: must be an object`);
  const fields = value as Readonly<Record<string, unknown>>;
  const need = (field: string, holds: boolean, rule: string): void => {
    if (!holds) throw new Error(`${where}: ${field} must be ${rule}, got ${JSON.stringify(fields[field])}`);
  };
  if (fields["event"] === "usage") {
    for (const field of USAGE_FIELDS) need(field, typeof fields[field] === "number", "a number");
    return value as UsageLine & { readonly event: "usage" };
  }
  const { t, task, connectionId, epoch, event, deadline, localPort } = fields;
  need("t", typeof t === "number", "a number");
  need("task", typeof task === "string" && task !== "", "a non-empty string");
  need("connectionId", typeof connectionId === "string" && connectionId !== "", "a non-empty string");
  need("epoch", Number.isSafeInteger(epoch), "a whole number");
  need("event", EVENTS.includes(event as JournalEvent), `one of ${EVENTS.join(", ")}, usage`);
  const holding = event === "held" || event === "renewed";
  need("deadline", typeof deadline === "number" || (!holding && deadline === undefined), "a number");
  need("localPort", localPort === undefined || Number.isSafeInteger(localPort), "a port number");
  return value as JournalLine;
}
