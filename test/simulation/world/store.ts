import type {
  BatchWriteItemCommandInput,
  BatchWriteItemCommandOutput,
  DynamoDBClient,
  UpdateItemCommandInput,
  UpdateItemCommandOutput,
} from "@aws-sdk/client-dynamodb";
import type { DateObservation } from "../../../shared/aws/date-header.ts";
import { sleep } from "../../../shared/clock.ts";
import { BY_STATE_INDEX, CONNECTION } from "../../../shared/connection/attributes.ts";
import { fullJitter } from "../../../shared/random.ts";
import type { Writer } from "../checker/lease-writes.ts";
import { TRUE_EPOCH_MS } from "../engine/machine.ts";
import type { SimProcess } from "../engine/process.ts";
import type { Scheduler } from "../engine/scheduler.ts";
import type { Seeded } from "../engine/seeded.ts";
import { FakeDynamoDb, type Fault, type TableDefinition } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { abortError, timeoutError } from "../../support/fake-dynamodb/errors.ts";
import type { IndexCap } from "./index-cap.ts";
import type { Weather } from "./weather.ts";

export interface Command {
  readonly input: object;
}

/** Told of everything that is sent and applied. */
export interface StoreObserver {
  /** The code under test asks for it; the attempts, which may leave much later, are the SDK's affair. */
  begun(writer: Writer, operation: string, input: object): void;
  /** At the instant of the effect. */
  applied(writer: Writer, operation: string, input: object, output: object): void;
  /** The answer reaches the process. `sentAtMs`: true time at which the operation's first attempt began. */
  answered(writer: Writer, operation: string, input: object, sentAtMs: number): void;
  note(writer: Writer, input: object, text: string): void;
}

/** Stands between a worker and the store: how a mistake of the code is planted without touching the code. */
export interface Tampering {
  /** Changes a worker's request on its way out. */
  request?(operation: string, input: object): object;
  /** Changes what comes back. */
  answer?(operation: string, input: object, answer: Answer): Answer;
}

export type Answer = { readonly output: object } | { readonly error: Error };

export interface SimStoreDeps {
  readonly scheduler: Scheduler;
  readonly seeded: Seeded;
  readonly weather: Weather;
  readonly tables: readonly TableDefinition[];
  readonly connectionsTable: string;
  readonly cap: IndexCap;
  readonly observer: StoreObserver;
  readonly tampering?: Tampering | undefined;
}

export interface ClientOptions {
  readonly process: SimProcess;
  /** Whose weather it lives in. */
  readonly place: string;
  readonly task: string | undefined;
  readonly attempts: number;
  readonly attemptTimeoutMs: number;
  /** The anchored clock and where to report the Date header of answers. */
  readonly dates?: { nowMs: () => number; seen: (date: DateObservation) => void };
}

const RETRYABLE = new Set(["ProvisionedThroughputExceededException", "InternalServerError", "TimeoutError"]);

/** DynamoDB behind a network: every attempt of every request has a way there and a way back, each with its own fate. */
export class SimStore {
  readonly db: FakeDynamoDb;
  /** The request whose effect is just happening, for listeners of the table's stream. */
  applying: { writer: Writer; operation: string; input: object } | undefined;
  /** When the last request that is on its way will arrive, as far as any was sent. */
  lastArrivalMs = 0;
  readonly #deps: SimStoreDeps;
  #fault: Fault | undefined;

  constructor(deps: SimStoreDeps) {
    this.#deps = deps;
    const { scheduler } = deps;
    this.db = new FakeDynamoDb({
      tables: deps.tables,
      random: deps.seeded.fork("index-lag").random,
      faults: () => this.#fault,
      clock: {
        monotonicMs: () => scheduler.nowMs,
        wallMs: () => TRUE_EPOCH_MS + scheduler.nowMs,
        after: (delayMs, fn) => scheduler.in(delayMs, fn),
      },
    });
  }

  /** A client as the SDK builds it: several attempts of the identical request, each with a timeout. */
  client(options: ClientOptions): DynamoDBClient {
    const seeded = this.#deps.seeded.fork(options.process.name);
    const client = {
      send: (command: Command, call?: { abortSignal?: AbortSignal }) =>
        this.#send(options, seeded, command, call?.abortSignal),
      destroy: () => undefined,
    };
    // As with the fake itself: only `send` and `destroy` of the SDK's class are used.
    return client as unknown as DynamoDBClient;
  }

  async #send(options: ClientOptions, seeded: Seeded, command: Command, signal?: AbortSignal): Promise<object> {
    const { clock } = options.process;
    const operation = command.constructor.name.replace(/Command$/, "");
    const writer: Writer = { process: options.process.name, task: options.task };
    // Serialised once, as by the SDK: what is sent again is the same.
    const given = structuredClone(command.input);
    const tampering = options.task === undefined ? undefined : this.#deps.tampering;
    const input = tampering?.request?.(operation, given) ?? given;
    const sentAtMs = this.#deps.scheduler.nowMs;
    if (options.process.alive) this.#deps.observer.begun(writer, operation, input);
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(options, seeded, { writer, operation, command, input, sentAtMs }, signal);
      } catch (error) {
        const name = error instanceof Error ? error.name : "";
        if (name !== "ConditionalCheckFailedException") {
          this.#deps.observer.note(writer, input, `${operation} attempt ${attempt}: ${name}`);
        }
        if (attempt >= options.attempts || !RETRYABLE.has(name)) throw error;
        const baseMs = name === "ProvisionedThroughputExceededException" ? 500 : 100;
        await sleep(clock, fullJitter(baseMs, 20_000, attempt - 1, seeded.random), signal);
        if (signal?.aborted === true) throw abortError(signal);
      }
    }
  }

  #attempt(
    options: ClientOptions,
    seeded: Seeded,
    request: { writer: Writer; operation: string; command: Command; input: object; sentAtMs: number },
    signal: AbortSignal | undefined,
  ): Promise<object> {
    const { observer, scheduler, weather } = this.#deps;
    const { process, dates } = options;
    const anchoredAtMs = dates?.nowMs();
    return new Promise((resolve, reject) => {
      const cancelTimeout = process.clock.after(options.attemptTimeoutMs, () => settle(() => reject(timeoutError())));
      const onAbort = (): void => settle(() => reject(abortError(signal as AbortSignal)));
      let settled = false;
      const settle = (how: () => void): void => {
        if (settled) return;
        settled = true;
        cancelTimeout();
        signal?.removeEventListener("abort", onAbort);
        how();
      };
      if (signal?.aborted === true) {
        settle(() => reject(abortError(signal)));
        return;
      }
      signal?.addEventListener("abort", onAbort);
      process.depart(() => {
        const climate = weather.storeOf(options.place);
        if (climate.cut || seeded.chance(climate.lostRequest)) return;
        const thereMs = seeded.chance(climate.late)
          ? seeded.between(...climate.lateMs)
          : seeded.skewed(...climate.latencyMs);
        this.lastArrivalMs = Math.max(this.lastArrivalMs, scheduler.nowMs + thereMs);
        scheduler.in(thereMs, () => {
          const dateMs = Math.floor((TRUE_EPOCH_MS + scheduler.nowMs) / 1000) * 1000;
          void this.#apply(options, seeded, request).then((applied) => {
            const tampering = options.task === undefined ? undefined : this.#deps.tampering;
            const outcome = tampering?.answer?.(request.operation, request.input, applied) ?? applied;
            const now = weather.storeOf(options.place);
            if (now.cut || seeded.chance(now.lostAnswer)) return;
            scheduler.in(seeded.skewed(...now.latencyMs), () =>
              process.deliver(() =>
                settle(() => {
                  if ("error" in outcome) {
                    // A verdict too: an identical earlier attempt may have been the one that was applied.
                    if (outcome.error.name === "ConditionalCheckFailedException") {
                      observer.answered(request.writer, request.operation, request.input, request.sentAtMs);
                    }
                    reject(outcome.error);
                    return;
                  }
                  if (dates !== undefined && anchoredAtMs !== undefined) {
                    dates.seen({ sentAtMs: anchoredAtMs, receivedAtMs: dates.nowMs(), dateMs });
                  }
                  observer.answered(request.writer, request.operation, request.input, request.sentAtMs);
                  resolve(outcome.output);
                }),
              ),
            );
          });
        });
      });
    });
  }

  async #apply(
    { place }: ClientOptions,
    seeded: Seeded,
    { writer, operation, command, input }: { writer: Writer; operation: string; command: Command; input: object },
  ): Promise<Answer> {
    const { connectionsTable, cap, observer } = this.#deps;
    const table = (input as { TableName?: string }).TableName;
    const metered = table === connectionsTable && (operation === "UpdateItem" || operation === "DeleteItem");
    this.#fault = this.#draw(place, operation, seeded, input);
    if (metered && this.#fault === undefined && !cap.admits()) this.#fault = { kind: "throttle" };
    const Class = command.constructor as new (input: object) => object;
    const sent = new Class(metered ? { ...input, ReturnConsumedCapacity: "INDEXES" } : input);
    this.applying = { writer, operation, input };
    // The effect happens inside this call, before it returns.
    const answer = this.db.client(writer.process).send(sent as never) as unknown as Promise<object>;
    this.applying = undefined;
    this.#fault = undefined;
    try {
      const output = await answer;
      if (metered) cap.spend(indexUnits(output as UpdateItemCommandOutput));
      observer.applied(writer, operation, input, output);
      return { output };
    } catch (error) {
      return { error: error as Error };
    }
  }

  #draw(place: string, operation: string, seeded: Seeded, input: object): Fault | undefined {
    const climate = this.#deps.weather.storeOf(place);
    if (seeded.chance(climate.throttle)) return { kind: "throttle" };
    if (seeded.chance(climate.serverError)) return { kind: "server-error" };
    if (seeded.chance(climate.applyThenError) && operation !== "BatchWriteItem") return { kind: "apply-then-error" };
    if (seeded.chance(climate.credentials)) return { kind: "credentials", name: "ExpiredTokenException" };
    if (operation === "BatchWriteItem" && climate.unprocessed > 0) {
      const entries = Object.values((input as BatchWriteItemCommandInput).RequestItems ?? {}).flat();
      const left = new Set(entries.flatMap((_, index) => (seeded.chance(climate.unprocessed) ? [index] : [])));
      if (left.size > 0) return { kind: "unprocessed", select: (index) => left.has(index) };
    }
    return undefined;
  }
}

function indexUnits(output: UpdateItemCommandOutput): number {
  return output.ConsumedCapacity?.GlobalSecondaryIndexes?.[BY_STATE_INDEX]?.CapacityUnits ?? 0;
}

/** The connection that a request to the connections table is about. */
export function connectionOf(input: object): string | undefined {
  return (input as UpdateItemCommandInput).Key?.[CONNECTION.id]?.S;
}

export type { BatchWriteItemCommandInput, BatchWriteItemCommandOutput, UpdateItemCommandInput };
