import type { Checkpoint } from "../../../shared/lease/index.ts";
import type { MessageRow } from "../../../shared/messages/row.ts";
import type { Lane, LaneEvents, LaneOptions, PushOptions } from "../../../worker/messages/lane.ts";

/** A lane whose rows become durable when the test says so; without a word, at once. */
export class ScriptedLane implements Lane {
  readonly events: LaneEvents;
  readonly options: LaneOptions;
  readonly rows: { readonly row: MessageRow; readonly checkpointed: boolean }[] = [];
  closed = false;
  /** While set, nothing becomes durable and flushes wait. */
  #held = false;
  #durable: Checkpoint | undefined;
  #newest: Checkpoint | undefined;
  #waiting: (() => void)[] = [];

  constructor(events: LaneEvents, options: LaneOptions) {
    this.events = events;
    this.options = options;
  }

  push(row: MessageRow, { checkpointed = true }: PushOptions = {}): void {
    this.rows.push({ row, checkpointed });
    if (!checkpointed) return;
    const cursor = row.cursor ?? this.#newest?.lastCursor;
    this.#newest = { lastSeq: row.seq, ...(cursor === undefined ? {} : { lastCursor: cursor }) };
    if (!this.#held) this.#durable = this.#newest;
  }

  get checkpoint(): Checkpoint | undefined {
    return this.#durable;
  }

  readonly pendingItems = 0;
  readonly pendingBytes = 0;

  async flush(): Promise<boolean> {
    if (this.#held) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return true;
  }

  close(): void {
    this.closed = true;
  }

  hold(): void {
    this.#held = true;
  }

  store(): void {
    this.#held = false;
    this.#durable = this.#newest;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Sequence numbers of the rows that count for the checkpoint. */
  get seqs(): bigint[] {
    return this.rows.filter(({ checkpointed }) => checkpointed).map(({ row }) => row.seq);
  }

  get payloads(): (string | Uint8Array)[] {
    return this.rows.map(({ row }) => row.payload);
  }
}
