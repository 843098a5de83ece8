import type { AnchoredClock } from "../../shared/clock.ts";
import type { ConnectionItem } from "../../shared/connection/item.ts";
import { unpositionedPartition, unpositionedSeq } from "../../shared/messages/row.ts";
import type { Holding } from "../lease/holding.ts";
import type { Lane } from "../messages/lane.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { PositionReader } from "./position.ts";
import type { ResumePoint } from "./target.ts";

export interface InboxDeps {
  readonly anchored: AnchoredClock;
  readonly metrics: Metrics;
  readonly lane: Lane;
  /** A position fell below what was received: the upstream numbers anew. Nothing was overwritten. */
  readonly onRegression: (last: bigint, seq: bigint) => void;
}

/** Gives every received message its key and puts it into the lane; knows where a stream goes on after a reconnect. */
export class Inbox {
  readonly #deps: InboxDeps;
  readonly #holding: Holding;
  readonly #positioned: boolean;
  #reader: PositionReader | undefined;
  /** Highest position taken into the lane, or stored by an earlier owner. */
  #lastReceived: bigint | undefined;
  #lastCursor: string | undefined;
  #regressed = false;
  #count = 0n;
  #sideCount = 0n;

  constructor(deps: InboxDeps, holding: Holding, item: ConnectionItem) {
    this.#deps = deps;
    this.#holding = holding;
    this.#positioned = item.kind === "positioned";
    this.#lastReceived = this.#positioned ? item.lastSeq : undefined;
    this.#lastCursor = item.lastCursor;
  }

  get resumePoint(): ResumePoint {
    return { lastSeq: this.#lastReceived, lastCursor: this.#lastCursor };
  }

  /** Reads what comes from now on by these settings; the kind is fixed for the life of a connection id. */
  readBy(item: ConnectionItem): void {
    const position = item.upstream.position;
    this.#reader = position === undefined ? undefined : new PositionReader(position.pointer);
  }

  take(payload: string | Uint8Array): void {
    if (this.#positioned) this.#takePositioned(payload);
    else this.#takeUnpositioned(payload);
  }

  #takePositioned(payload: string | Uint8Array): void {
    const { lane, metrics, onRegression } = this.#deps;
    const { connectionId, epoch } = this.#holding;
    const seq = typeof payload === "string" ? this.#reader?.sequence(payload) : undefined;
    if (seq === undefined) {
      metrics.count("MessagesWithoutPosition");
      const key = { connectionId: unpositionedPartition(connectionId), seq: unpositionedSeq(epoch, ++this.#sideCount) };
      lane.push({ ...key, ...this.#received(payload) }, { checkpointed: false });
      return;
    }
    if (this.#regressed || (this.#lastReceived !== undefined && seq <= this.#lastReceived)) {
      metrics.count("MessagesRepeated");
      // A resume may be inclusive. Anything lower would overwrite what is stored under another numbering, and whatever
      // comes behind it belongs to that numbering: once it passes the old one it would look like its continuation.
      if (!this.#regressed && this.#lastReceived !== undefined && seq < this.#lastReceived) {
        this.#regressed = true;
        onRegression(this.#lastReceived, seq);
      }
      return;
    }
    this.#lastReceived = seq;
    lane.push({ connectionId, seq, ...this.#received(payload) });
  }

  #takeUnpositioned(payload: string | Uint8Array): void {
    const { connectionId, epoch } = this.#holding;
    const cursor = typeof payload === "string" ? this.#reader?.cursor(payload) : undefined;
    if (cursor !== undefined) this.#lastCursor = cursor;
    const key = { connectionId, seq: unpositionedSeq(epoch, ++this.#count) };
    this.#deps.lane.push({ ...key, ...this.#received(payload), ...(cursor === undefined ? {} : { cursor }) });
  }

  #received(payload: string | Uint8Array) {
    return { payload, receivedAtMs: this.#deps.anchored.nowMs(), epoch: this.#holding.epoch };
  }
}
