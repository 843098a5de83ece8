import { closeSync, openSync, writeSync } from "node:fs";
import type { Clock } from "../../shared/clock.ts";
import type { Holding } from "./holding.ts";

export type OwnershipEvent =
  | "held"
  | "renewed"
  | "released"
  | "parked"
  | "lost"
  | "fenced"
  /** A socket of this holding is open. */
  | "open"
  /** A socket of this holding is gone. */
  | "closed";

/** Who acted when, for an audit of all processes of one host: times are of the monotonic clock they share. */
export interface OwnershipJournal {
  record(event: OwnershipEvent, holding: Holding, more?: { localPort?: number }): void;
}

export const noJournal: OwnershipJournal = { record: () => undefined };

/** Appends JSON lines, each with one synchronous write: what happened is on file even if the process is killed now. */
export class FileJournal implements OwnershipJournal {
  readonly #fd: number;
  readonly #clock: Clock;

  constructor(path: string, clock: Clock) {
    this.#fd = openSync(path, "a");
    this.#clock = clock;
  }

  record(event: OwnershipEvent, holding: Holding, more: { localPort?: number } = {}): void {
    this.#append({
      t: this.#clock.monotonicMs(),
      event,
      task: holding.owner,
      connectionId: holding.connectionId,
      // Epochs count seconds and acquires: far below 2^53.
      epoch: Number(holding.epoch),
      ...(event === "held" || event === "renewed" ? { deadline: holding.deadline.monotonicEndMs } : {}),
      ...more,
    });
  }

  /** Counters of the process, for reports of what a run cost. */
  recordUsage(usage: Record<string, number>): void {
    this.#append({ t: this.#clock.monotonicMs(), event: "usage", ...usage });
  }

  close(): void {
    closeSync(this.#fd);
  }

  #append(line: object): void {
    writeSync(this.#fd, `${JSON.stringify(line)}\n`);
  }
}
