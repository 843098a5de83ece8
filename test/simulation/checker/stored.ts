import type { BatchWriteItemCommandInput, BatchWriteItemCommandOutput } from "@aws-sdk/client-dynamodb";
import { MESSAGE } from "../../../shared/messages/row.ts";
import type { SimUpstream, SimMessage } from "../world/upstream.ts";
import type { Violations } from "./violations.ts";

const SEQS_PER_EPOCH = 10n ** 12n;

/** Rules about what is stored: every row was received by an owner that might act, and no checkpoint is ahead of the rows. */
export class Stored {
  readonly #violations: Violations;
  readonly #upstream: (connectionId: string) => SimUpstream | undefined;
  /** Per connection: payload by seq. */
  readonly #rows = new Map<string, Map<bigint, string>>();
  /** Per connection: how many of the upstream's messages are known to be covered. */
  readonly #covered = new Map<string, number>();
  readonly #prefix = new Map<string, bigint>();

  constructor(violations: Violations, upstream: (connectionId: string) => SimUpstream | undefined) {
    this.#violations = violations;
    this.#upstream = upstream;
  }

  /** A batch of a worker, as it is applied. */
  applied(task: string, input: BatchWriteItemCommandInput, output: BatchWriteItemCommandOutput): void {
    const left = new Set(Object.values(output.UnprocessedItems ?? {}).flatMap((list) => list.map(rowKey)));
    for (const request of Object.values(input.RequestItems ?? {}).flat()) {
      if (left.has(rowKey(request))) continue;
      const row = request.PutRequest?.Item;
      const id = row?.[MESSAGE.connectionId]?.S ?? "";
      const upstream = this.#upstream(id);
      if (row === undefined || upstream === undefined) {
        if (!id.includes("#")) this.#violations.report("unexpected-error", id, "a row for an unknown connection");
        continue;
      }
      const payload = row[MESSAGE.payload]?.S ?? "";
      const seq = BigInt(row[MESSAGE.seq]?.N ?? "0");
      this.#checkReceipt(task, upstream, payload, BigInt(row[MESSAGE.epoch]?.N ?? "0"));
      const rows = this.rowsOf(id);
      const before = rows.get(seq);
      if (before !== undefined && before !== payload) {
        this.#violations.report("stream-differs", id, `the row ${seq} is overwritten by another message`);
      }
      rows.set(seq, payload);
    }
  }

  rowsOf(connectionId: string): Map<bigint, string> {
    const rows = this.#rows.get(connectionId) ?? new Map<bigint, string>();
    this.#rows.set(connectionId, rows);
    return rows;
  }

  /** The next life of the id begins without a checkpoint. */
  deleted(connectionId: string): void {
    this.#covered.delete(connectionId);
  }

  /** The item claims that everything up to `lastSeq` is stored. */
  checkpointed(connectionId: string, lastSeq: bigint): void {
    const upstream = this.#upstream(connectionId);
    if (upstream === undefined) return;
    const gap = upstream.positioned
      ? this.#gapOfPositioned(upstream, lastSeq)
      : this.#gapOfEpoch(connectionId, lastSeq);
    if (gap !== undefined) {
      this.#violations.report(
        "checkpoint-past-gap",
        connectionId,
        `last_seq ${lastSeq} covers ${gap}, which is not stored`,
      );
    }
  }

  #gapOfPositioned(upstream: SimUpstream, lastSeq: bigint): string | undefined {
    const rows = this.rowsOf(upstream.connectionId);
    let covered = this.#covered.get(upstream.connectionId) ?? 0;
    for (; covered < upstream.sent.length; covered++) {
      const message = upstream.sent[covered];
      if (message === undefined || message.seq > lastSeq) break;
      if (!rows.has(message.seq)) return `message ${message.seq}`;
    }
    this.#covered.set(upstream.connectionId, covered);
    return upstream.sent[covered - 1]?.seq === lastSeq ? undefined : `position ${lastSeq} itself`;
  }

  #gapOfEpoch(connectionId: string, lastSeq: bigint): string | undefined {
    const rows = this.rowsOf(connectionId);
    const first = (lastSeq / SEQS_PER_EPOCH) * SEQS_PER_EPOCH + 1n;
    const known = this.#prefix.get(connectionId) ?? 0n;
    for (let seq = known >= first ? known + 1n : first; seq <= lastSeq; seq++) {
      if (!rows.has(seq)) return `row ${seq}`;
    }
    this.#prefix.set(connectionId, lastSeq);
    return undefined;
  }

  #checkReceipt(task: string, upstream: SimUpstream, payload: string, epoch: bigint): void {
    const message: SimMessage | undefined = upstream.find(payload);
    const id = upstream.connectionId;
    if (message === undefined) {
      this.#violations.report("row-without-receipt", id, `${task} stores what was never sent: ${payload.slice(0, 60)}`);
    } else if (!message.receipts.some((receipt) => receipt.task === task && receipt.epoch === epoch)) {
      const text = `${task} stores ${payload.slice(0, 60)}, which it did not receive while acting under epoch ${epoch}`;
      this.#violations.report("row-without-receipt", id, text);
    }
  }
}

function rowKey(request: {
  PutRequest?: { Item?: Record<string, { S?: string; N?: string }> | undefined } | undefined;
}) {
  const item = request.PutRequest?.Item;
  return `${item?.[MESSAGE.connectionId]?.S ?? ""}/${item?.[MESSAGE.seq]?.N ?? ""}`;
}
