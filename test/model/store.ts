import { QueryCommand, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import path from "node:path";
import { readServerlessFile } from "../../local/serverless-file.ts";
import { leaseOf, type RawItem } from "../../shared/connection/item.ts";
import {
  acquire,
  deleteConnection,
  park,
  release,
  releaseOf,
  renew,
  start,
  stop,
  type LeaseTable,
  type Outcome,
} from "../../shared/lease/index.ts";
import { requestOf } from "../support/fake-dynamodb/execute.ts";
import { compileSchema, type TableSchema } from "../support/fake-dynamodb/schema.ts";
import { ChangeStream } from "../support/fake-dynamodb/stream.ts";
import { Table } from "../support/fake-dynamodb/table.ts";
import { itemFromSdk, itemToSdk } from "../support/fake-dynamodb/values.ts";
import { VirtualClock } from "../support/virtual-clock.ts";
import type { Bounds, RequestKind } from "./bounds.ts";
import { FREE, NOBODY, type Answer, type Item, type Request } from "./state.ts";

/** A write as the model names it: a worker's, or one of those that carry no time of their own. */
export type Write =
  | Request
  | { readonly kind: "release-of"; readonly owner: number }
  | { readonly kind: "start" | "stop" }
  /** The producer's clock, in half ticks. */
  | { readonly kind: "delete"; readonly now: number };

export interface Applied {
  readonly item: Item | undefined;
  readonly answer: Answer;
  /** False when the item is what it was. */
  readonly changed: boolean;
}

const ID = "connection";
const TICK_MS = 1000;
/** Now, in ms and in seconds: above every rank, so that an epoch that starts from the time is higher than all before. */
const NOW_S = 1_000_000;
const NOW_MS = NOW_S * 1000;
const CLOCK = new VirtualClock();

/**
 * Says what a write does to an item, and what its sender concludes from the answer, by running the real operation over a
 * table with that one item. Each pair of item and write is run once.
 *
 * The operations are asynchronous, a search is not: what is not known yet is noted, and `settle` finds it out.
 */
export class ModelStore {
  readonly #bounds: Bounds;
  readonly #schema: TableSchema;
  readonly #known = new Map<number, Map<number, Applied>>();
  #wanted: { readonly item: Item | undefined; readonly write: Write }[] = [];
  #size = 0;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
    const { tables } = readServerlessFile({ projectRoot: path.join(import.meta.dirname, "../..") });
    const definition = tables.find((table) => table.logicalId === "ConnectionsTable");
    if (definition === undefined) throw new Error("serverless.yml has no ConnectionsTable");
    this.#schema = compileSchema(definition.createInput);
  }

  /** Distinct pairs of item and write that were run. */
  get size(): number {
    return this.#size;
  }

  /** undefined while it is not known: call {@link settle} and ask again. */
  apply(item: Item | undefined, write: Write): Applied | undefined {
    const known = this.#known.get(codeOfItem(item))?.get(codeOfWrite(write));
    if (known === undefined) this.#wanted.push({ item, write });
    return known;
  }

  /** Runs what was asked for and not known; false when there was nothing. */
  async settle(): Promise<boolean> {
    if (this.#wanted.length === 0) return false;
    const wanted = this.#wanted;
    this.#wanted = [];
    for (const { item, write } of wanted) {
      const ofItem = this.#known.get(codeOfItem(item)) ?? new Map<number, Applied>();
      this.#known.set(codeOfItem(item), ofItem);
      ofItem.set(codeOfWrite(write), await this.#run(item, write));
      this.#size++;
    }
    return true;
  }

  async #run(item: Item | undefined, write: Write): Promise<Applied> {
    const table = new Table(this.#schema, { clock: CLOCK, stream: new ChangeStream(() => 0), indexLagMs: () => 0 });
    if (item !== undefined) {
      const stored = itemFromSdk(this.#toRaw(item));
      table.write(table.keyOfItem(stored), stored);
    }
    const lease = { client: this.#client(table, write.kind), tableName: this.#schema.name };
    const answer = await this.#send(lease, write);
    const [row] = [...table.rows.walk({})];
    const after = row === undefined ? undefined : this.#fromRaw(itemToSdk(row.item));
    return { item: after, answer, changed: !same(item, after) };
  }

  /** The SDK's client, reduced to what runs against the one table. */
  #client(table: Table, kind: RequestKind): DynamoDBClient {
    const store = { table: () => table, pageBytes: 1_000_000 };
    const { tamper } = this.#bounds;
    const send = (command: { input: object }): Promise<object> =>
      new Promise((resolve) => {
        if (command instanceof QueryCommand) {
          // An index lags: it may show the connection under a name that the item bears no more.
          resolve({ Items: [{ connection_id: { S: ID } }] });
          return;
        }
        tamper?.(kind, command.input);
        resolve(requestOf(command, store).execute());
      });
    return { send } as unknown as DynamoDBClient;
  }

  async #send(table: LeaseTable, write: Write): Promise<Answer> {
    switch (write.kind) {
      case "acquire": {
        const skewMs = this.#bounds.acquireSkewTicks * TICK_MS;
        const nowMs = msOf(write.takeable) + skewMs;
        const request = { connectionId: ID, owner: nameOf(write.owner), nowMs, leaseMs: msOf(write.expires) - nowMs };
        return this.#answer(await acquire(table, { ...request, skewMs }), ({ item }) => item);
      }
      case "renew":
        return this.#answer(
          await renew(table, { ...this.#holder(write), expiresAtMs: msOf(write.expires) }),
          ({ item }) => item,
        );
      case "release":
        return this.#answer(await release(table, this.#holder(write)), () => ({}));
      case "park":
        return this.#answer(
          await park(table, { ...this.#holder(write), untilMs: msOf(write.expires), error: "upstream" }),
          () => ({}),
        );
      case "release-of":
        await releaseOf({ table, clock: CLOCK }, { deadTask: nameOf(write.owner), perSecond: 1000, attempts: 1 });
        return SAID_NOTHING;
      case "start":
        await start(table, { connectionId: ID, wsUrl: "wss://feed.test/" });
        return SAID_NOTHING;
      case "stop":
        await stop(table, ID);
        return SAID_NOTHING;
      case "delete":
        await deleteConnection(table, {
          connectionId: ID,
          nowMs: msOf(write.now),
          skewMs: this.#bounds.skewTicks * TICK_MS,
        });
        return SAID_NOTHING;
    }
  }

  /** The half of an outcome that a worker acts on; what it does not read stays empty, so that equal answers are equal. */
  #answer<T>(outcome: Outcome<T>, itemOf: (value: T) => RawItem): Answer {
    if (outcome.kind === "held") {
      const raw = itemOf(outcome.value);
      if (Object.keys(raw).length === 0) return { ...SAID_NOTHING, kind: "held" };
      const { epoch, seq, started } = this.#fromRaw(raw);
      return { kind: "held", epoch, expires: FREE, seq, started };
    }
    if (outcome.kind === "lost" && outcome.reason === "own-older-life" && outcome.item !== undefined) {
      const { epoch, expires } = this.#fromRaw(outcome.item);
      return { kind: "older-life", epoch, expires, seq: 0, started: true };
    }
    if (outcome.kind === "unknown" && outcome.reason !== "expiring") throw outcome.error;
    // A refusal shows the item as well: a mistake may take its epoch for an own one.
    const item = outcome.kind === "lost" && outcome.item !== undefined ? this.#fromRaw(outcome.item) : undefined;
    const epoch = this.#bounds.mistakes.hintIsOwnership ? (item?.epoch ?? 0) : 0;
    return { ...SAID_NOTHING, epoch };
  }

  #holder(request: Request) {
    const checkpoint = request.seq === 0 ? {} : { checkpoint: { lastSeq: BigInt(request.seq) } };
    return { connectionId: ID, owner: nameOf(request.owner), epoch: this.#epochOf(request.epoch), ...checkpoint };
  }

  #toRaw(item: Item): RawItem {
    return {
      connection_id: { S: ID },
      desired_state: { S: item.started ? "STARTED" : "STOPPED" },
      ws_url: { S: "wss://feed.test/" },
      upstream: { M: {} },
      failure_count: { N: "0" },
      lease_expires_at_ms: { N: String(msOf(item.expires)) },
      ...(item.owner === NOBODY ? {} : { lease_owner: { S: nameOf(item.owner) } }),
      ...(item.epoch === 0 ? {} : { lease_epoch: { N: this.#epochOf(item.epoch).toString() } }),
      ...(item.seq === 0 ? {} : { last_seq: { N: String(item.seq) } }),
    };
  }

  #fromRaw(raw: RawItem): Item {
    const { desiredState, owner, expiresAtMs, epoch } = leaseOf(raw);
    return {
      started: desiredState === "STARTED",
      owner: owner === undefined ? NOBODY : Number(owner.slice(NAME.length)),
      expires: timeOfMs(expiresAtMs),
      epoch: epoch === undefined ? 0 : Number(epoch - this.#epochsFrom()),
      seq: Number(raw["last_seq"]?.N ?? "0"),
    };
  }

  #epochOf(rank: number): bigint {
    return BigInt(rank) + this.#epochsFrom();
  }

  /** An impatient producer's item may be acquired anew while its old epochs are not below the time yet. */
  #epochsFrom(): bigint {
    return this.#bounds.patientProducer ? 0n : BigInt(NOW_S + 1);
  }
}

const SAID_NOTHING: Answer = { kind: "refused", epoch: 0, expires: FREE, seq: 0, started: true };

const NAME = "task-";

function nameOf(owner: number): string {
  return `${NAME}${owner}`;
}

function msOf(time: number): number {
  return time === FREE ? 0 : NOW_MS + (time >> 1) * TICK_MS + (time & 1);
}

function timeOfMs(ms: number | undefined): number {
  if (ms === undefined) throw new Error("no operation of the model leaves an item without an expiry");
  if (ms === 0) return FREE;
  const ticks = Math.floor((ms - NOW_MS) / TICK_MS);
  const rest = ms - NOW_MS - ticks * TICK_MS;
  if (rest > 1) throw new Error(`${ms} ms is no time of the model`);
  return 2 * ticks + rest;
}

function same(a: Item | undefined, b: Item | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return (
    a.started === b.started && a.owner === b.owner && a.expires === b.expires && a.epoch === b.epoch && a.seq === b.seq
  );
}

/** Both codes stay below 2^30, where numbers are cheapest as keys. */
function codeOfItem(item: Item | undefined): number {
  if (item === undefined) return 0;
  return pack(
    [item.started ? 2 : 1, 2],
    [item.owner + 1, 3],
    [timeCode(item.expires), 8],
    [item.epoch, 5],
    [item.seq, 5],
  );
}

const CODES = { acquire: 0, renew: 1, release: 2, park: 3, "release-of": 4, start: 5, stop: 6, delete: 7 } as const;

function codeOfWrite(write: Write): number {
  return (codeOfContent(write) << 3) | CODES[write.kind];
}

function codeOfContent(write: Write): number {
  switch (write.kind) {
    case "start":
    case "stop":
      return 0;
    case "release-of":
      return pack([write.owner, 3]);
    case "delete":
      return pack([timeCode(write.now), 8]);
    case "acquire":
      return pack([write.owner, 3], [timeCode(write.takeable), 8], [timeCode(write.expires), 8]);
    default:
      return pack([write.owner, 3], [write.epoch, 5], [write.seq, 5], [timeCode(write.expires), 8]);
  }
}

function timeCode(time: number): number {
  return time === FREE ? 0 : time + 128;
}

function pack(...parts: readonly (readonly [value: number, bits: number])[]): number {
  let packed = 0;
  for (const [value, bits] of parts) {
    if (value < 0 || value >= 1 << bits) throw new Error(`${value} does not fit into ${bits} bits`);
    packed = (packed << bits) | value;
  }
  return packed;
}
