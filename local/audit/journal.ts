import { readFile } from "node:fs/promises";

const EVENTS = ["held", "renewed", "released", "parked", "lost", "fenced", "open", "closed"] as const;
export type JournalEvent = (typeof EVENTS)[number];

/** One line of a worker's ownership journal. Times are host clock milliseconds. */
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

/**
 * Reads a worker's journal, one JSON object a line. A last line without its line feed is what a killed worker leaves:
 * it is dropped when it cannot be read.
 *
 * @throws if any other line is not a journal line; the message names file, line and rule
 */
export async function readJournal(path: string): Promise<JournalLine[]> {
  return parseJournal(await readFile(path, "utf8"), path);
}

export function parseJournal(text: string, name = "journal"): JournalLine[] {
  const lines = text.split("\n");
  const torn = lines.pop() ?? "";
  const parsed = lines.flatMap((line, at) => (line === "" ? [] : [parseLine(line, `${name}:${at + 1}`)]));
  if (torn !== "") {
    try {
      parsed.push(parseLine(torn, name));
    } catch {
      // Torn in the middle: the worker died while writing it.
    }
  }
  return parsed;
}

function parseLine(line: string, where: string): JournalLine {
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
  const { t, task, connectionId, epoch, event, deadline, localPort } = fields;
  need("t", typeof t === "number", "a number");
  need("task", typeof task === "string" && task !== "", "a non-empty string");
  need("connectionId", typeof connectionId === "string" && connectionId !== "", "a non-empty string");
  need("epoch", Number.isSafeInteger(epoch), "a whole number");
  need("event", EVENTS.includes(event as JournalEvent), `one of ${EVENTS.join(", ")}`);
  const holding = event === "held" || event === "renewed";
  need("deadline", typeof deadline === "number" || (!holding && deadline === undefined), "a number");
  need("localPort", localPort === undefined || Number.isSafeInteger(localPort), "a port number");
  return value as JournalLine;
}
