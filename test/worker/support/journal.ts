import type { Holding } from "../../../worker/lease/holding.ts";
import type { OwnershipEvent, OwnershipJournal } from "../../../worker/lease/journal.ts";

/** Keeps what the worker says of its ownership, in order. */
export class RecordingJournal implements OwnershipJournal {
  readonly entries: { readonly event: OwnershipEvent; readonly connectionId: string; readonly epoch: bigint }[] = [];

  record(event: OwnershipEvent, { connectionId, epoch }: Holding): void {
    this.entries.push({ event, connectionId, epoch });
  }

  /** Events of one connection, or of all. */
  events(connectionId?: string): OwnershipEvent[] {
    return this.entries
      .filter((one) => (connectionId ?? one.connectionId) === one.connectionId)
      .map((one) => one.event);
  }
}
