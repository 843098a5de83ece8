import type { UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";
import { leaseOf, type RawItem } from "../../../shared/connection/item.ts";
import { CONNECTION } from "../../../shared/connection/attributes.ts";
import type { StreamRecord } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import type { Violations } from "./violations.ts";

/** Who sent the write that is being applied. */
export interface Writer {
  readonly process: string;
  /** Set when it is a worker: then its holder rules apply. */
  readonly task: string | undefined;
}

/** Rules about single writes to the connections table: what is sent, and what becomes of the item. */
export class LeaseWrites {
  readonly #violations: Violations;
  readonly #effectsOnly: boolean;
  readonly #highest = new Map<string, { epoch: bigint; lastSeq: bigint }>();

  constructor(violations: Violations, effectsOnly: boolean) {
    this.#violations = violations;
    this.#effectsOnly = effectsOnly;
  }

  /** A request of a worker to the connections table, as it leaves. */
  sent(task: string, input: UpdateItemCommandInput): void {
    if (this.#effectsOnly) return;
    const id = input.Key?.[CONNECTION.id]?.S ?? "";
    const terms = conjunction(input.ConditionExpression ?? "");
    const values = input.ExpressionAttributeValues ?? {};
    const bound = (attribute: string): string | undefined => {
      const term = terms.find((candidate) => candidate.startsWith(`${attribute} = :`));
      return term === undefined ? undefined : term.slice(attribute.length + 3);
    };
    if (isAcquire(input)) {
      if (!terms.includes("attribute_exists(connection_id)")) {
        this.#violations.report("creates-item", id, `${task}'s acquire could create an item`);
      }
      return;
    }
    const owner = bound(CONNECTION.owner);
    if (owner === undefined || values[owner]?.S !== task) {
      this.#violations.report("unconditional-write", id, `${task} writes without the condition that it is the owner`);
    }
    if (bound(CONNECTION.epoch) === undefined) {
      this.#violations.report("unconditional-write", id, `${task} writes without a condition on its epoch`);
    }
  }

  /** A change as the table's stream shows it, with the request that made it. */
  changed(record: StreamRecord, writer: Writer | undefined, request: UpdateItemCommandInput | undefined): void {
    const { Keys, OldImage, NewImage } = record.dynamodb;
    const id = Keys[CONNECTION.id]?.S ?? "";
    if (NewImage === undefined) {
      // A later life of the id starts from higher epochs, which is checked; its stream starts anew.
      const known = this.#highest.get(id);
      if (known !== undefined) this.#highest.set(id, { epoch: known.epoch, lastSeq: -1n });
      return;
    }
    if (OldImage === undefined) {
      if (writer?.task !== undefined) this.#violations.report("creates-item", id, `${writer.process} creates the item`);
      return;
    }
    this.#compare(id, OldImage, NewImage);
    if (writer?.task !== undefined && request !== undefined)
      this.#byWorker(id, writer.task, request, OldImage, NewImage);
  }

  #compare(id: string, oldImage: RawItem, newImage: RawItem): void {
    const before = leaseOf(oldImage);
    const after = leaseOf(newImage);
    const known = this.#highest.get(id) ?? { epoch: -1n, lastSeq: -1n };
    // Not acquired yet in this life: it starts above the epochs of the life before.
    const epoch = after.epoch ?? known.epoch;
    const lastSeq = BigInt(newImage[CONNECTION.lastSeq]?.N ?? "-1");
    if (epoch < known.epoch) this.#violations.report("epoch-falls", id, `from ${known.epoch} to ${epoch}`);
    if (lastSeq < known.lastSeq) this.#violations.report("last-seq-falls", id, `from ${known.lastSeq} to ${lastSeq}`);
    this.#highest.set(id, { epoch: max(epoch, known.epoch), lastSeq: max(lastSeq, known.lastSeq) });

    if (after.owner === undefined) return;
    const sameLife = before.owner === after.owner && before.epoch === after.epoch;
    if (sameLife && (after.expiresAtMs ?? 0) < (before.expiresAtMs ?? 0)) {
      const text = `from ${String(before.expiresAtMs)} to ${String(after.expiresAtMs)} under epoch ${String(after.epoch)}`;
      this.#violations.report("expiry-falls", id, text);
    }
    if (before.owner !== after.owner && before.epoch === after.epoch) {
      this.#violations.report("epoch-not-raised", id, `${after.owner} owns the epoch of ${before.owner ?? "nobody"}`);
    }
  }

  #byWorker(id: string, task: string, request: UpdateItemCommandInput, oldImage: RawItem, newImage: RawItem): void {
    if (isAcquire(request)) {
      if (leaseOf(newImage).epoch === leaseOf(oldImage).epoch) {
        this.#violations.report("epoch-not-raised", id, `${task} acquires without raising the epoch`);
      }
      return;
    }
    if (leaseOf(oldImage).owner !== task) {
      const owner = leaseOf(oldImage).owner ?? "nobody";
      this.#violations.report("stale-write-applied", id, `${task} writes into a lease of ${owner}`);
    }
    const claimed = request.ExpressionAttributeValues?.[":mine"]?.N;
    if (claimed !== undefined && leaseOf(oldImage).epoch !== BigInt(claimed)) {
      const text = `${task}'s write of epoch ${claimed} applies under ${String(leaseOf(oldImage).epoch)}`;
      this.#violations.report("stale-write-applied", id, text);
    }
  }
}

/** Only an acquire sets the owner. */
function isAcquire(input: UpdateItemCommandInput): boolean {
  return /lease_owner\s*=/.test(input.UpdateExpression ?? "");
}

/** The terms that must all hold; whatever stands in parentheses is one term. */
function conjunction(condition: string): string[] {
  const terms: string[] = [];
  let depth = 0;
  let term = "";
  for (const word of condition.split(/\s+/)) {
    if (word === "AND" && depth === 0) {
      terms.push(term);
      term = "";
      continue;
    }
    for (const char of word) depth += char === "(" ? 1 : char === ")" ? -1 : 0;
    term = term === "" ? word : `${term} ${word}`;
  }
  return [...terms, term];
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
