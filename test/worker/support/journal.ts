import type { Holding } from "../../../worker/lease/holding.ts";
import type { OwnershipEvent, OwnershipJournal } from "../../../worker/lease/journal.ts";

/** Keeps what the worker says of its ownership, in order. */
export class RecordingJournal implements OwnershipJournal {
  readonly entries: {
    readonly event: OwnershipEvent;
    readonly connectionId: string;
    readonly epoch: bigint;
    readonly localPort?: number;
  }[] = [];

  record(event: OwnershipEvent, { connectionId, epoch }: Holding, more: { localPort?: number } = {}): void {
    this.entries.push({ event, connectionId, epoch, ...more });
  }

  /** Events of one connection, or of all. */
  events(connectionId?: string): OwnershipEvent[] {
    return this.entries
      .filter((one) => (connectionId ?? one.connectionId) === one.connectionId)
      .map((one) => one.event);
  }
}
