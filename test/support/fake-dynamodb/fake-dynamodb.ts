import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Clock } from "../../../shared/clock.ts";
import type { Random } from "../../../shared/random.ts";
import { abortError, resourceNotFound, validationError } from "./errors.ts";
import { requestOf } from "./execute.ts";
import { checkDelay, type FaultHook } from "./faults.ts";
import type { Store } from "./operations/context.ts";
import { compileSchema, type TableDefinition } from "./schema.ts";
import { answer } from "./send.ts";
import { ChangeStream, type StreamListener } from "./stream.ts";
import { Table } from "./table.ts";
import { itemToSdk, type SdkItem } from "./values.ts";

export type { Call, Fault, FaultHook } from "./faults.ts";
export type { TableDefinition } from "./schema.ts";
export type { StreamListener, StreamRecord } from "./stream.ts";

/** Milliseconds between a base write and its visibility in an index, or how to draw them for each written entry. */
export type IndexLag = number | ((random: Random) => number);

export interface FakeDynamoDbOptions {
  /** Index lag and delayed faults run on the monotonic clock, stream times on the wall clock. */
  readonly clock: Clock;
  /** Handed to `indexLagMs`; by default a fixed sequence, so that a run can be repeated. */
  readonly random?: Random;
  readonly tables: readonly TableDefinition[];
  readonly faults?: FaultHook;
  readonly indexLagMs?: IndexLag;
  /** A page of Query and Scan ends behind the item that reaches this size; default 1 MiB. */
  readonly pageBytes?: number;
}

const DEFAULT_PAGE_BYTES = 1_048_576;

/**
 * DynamoDB in memory, at the level of the SDK's client: it takes the SDK's own command objects and throws the SDK's own
 * exceptions, so the code under test runs unchanged. It can do what a real server cannot be made to do: throttle, lose
 * answers, apply late, leave batch entries unprocessed, and show indexes as they were.
 *
 * Every request takes effect atomically at one instant. What it does not support it refuses with an error that is no
 * service exception, so a test cannot pass by accident.
 */
export class FakeDynamoDb {
  /** May be changed at any time; holds for requests sent from then on. */
  faults: FaultHook | undefined;
  /** May be changed at any time; holds for writes made from then on. */
  indexLagMs: IndexLag;

  readonly #clock: Clock;
  readonly #random: Random;
  readonly #tables = new Map<string, Table>();
  readonly #stream: ChangeStream;
  readonly #store: Store;
  #requests = 0;

  constructor(options: FakeDynamoDbOptions) {
    this.faults = options.faults;
    this.indexLagMs = options.indexLagMs ?? 0;
    this.#clock = options.clock;
    this.#random = options.random ?? fixedSequence();
    this.#stream = new ChangeStream(() => Math.floor(this.#clock.wallMs() / 1000));
    for (const definition of options.tables) {
      const schema = compileSchema(definition);
      const parts = { clock: this.#clock, stream: this.#stream, indexLagMs: () => this.#drawLag() };
      this.#tables.set(schema.name, new Table(schema, parts));
    }
    this.#store = {
      table: (name) => this.#table(name),
      pageBytes: options.pageBytes ?? DEFAULT_PAGE_BYTES,
    };
  }

  /** A client of this store. Its name reaches the fault hook, so that one worker can be cut off and another not. */
  client(name = "client"): DynamoDBClient {
    const client = {
      send: (command: unknown, options?: { abortSignal?: AbortSignal }) =>
        this.#send(name, command, options?.abortSignal),
      destroy: () => undefined,
    };
    // The one place where the stand-in passes for the SDK's class: only `send` and `destroy` of it are used.
    return client as unknown as DynamoDBClient;
  }

  /**
   * Calls `listener` for every change of every table with a stream, in the order of the writes and within the write. A
   * write that changes nothing gives no record. Returns the function that ends the subscription.
   */
  onStreamRecord(listener: StreamListener): () => void {
    return this.#stream.subscribe(listener);
  }

  /** All items of a table, without a request: no fault, no count. */
  items(tableName: string): SdkItem[] {
    return [...this.#table(tableName).rows.walk({})].map(({ item }) => itemToSdk(item));
  }

  async #send(client: string, command: unknown, signal: AbortSignal | undefined): Promise<object> {
    if (signal?.aborted === true) throw abortError(signal);
    const { operation, input, table, execute } = requestOf(command, this.#store);
    const n = ++this.#requests;
    const fault = this.faults?.({ operation, input, table, n, client });
    return answer(execute, fault, this.#clock, signal);
  }

  #table(name: string | undefined): Table {
    if (name === undefined) {
      throw validationError("The parameter 'TableName' is required but was not present in the request");
    }
    const table = this.#tables.get(name);
    if (table === undefined) throw resourceNotFound();
    return table;
  }

  #drawLag(): number {
    const lagMs = typeof this.indexLagMs === "number" ? this.indexLagMs : this.indexLagMs(this.#random);
    return checkDelay("indexLagMs", lagMs);
  }
}

/** A linear congruential generator from a fixed seed. */
function fixedSequence(): Random {
  let state = 1;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
