import type { UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";
import { sleep, type Clock } from "../../../shared/clock.ts";
import { CONNECTION } from "../../../shared/connection/attributes.ts";
import type { RawItem } from "../../../shared/connection/item.ts";
import { deleteConnection, start, stop, type LeaseTable } from "../../../shared/lease/index.ts";
import { workerSettings, type WorkerSettings } from "../../../worker/settings.ts";
import { LeaseWrites } from "../checker/lease-writes.ts";
import { Ownership } from "../checker/ownership.ts";
import { Stored } from "../checker/stored.ts";
import { Violations } from "../checker/violations.ts";
import { History } from "../engine/history.ts";
import { Machine, type MachineClockSettings } from "../engine/machine.ts";
import { SimProcess } from "../engine/process.ts";
import { Scheduler } from "../engine/scheduler.ts";
import { Seeded } from "../engine/seeded.ts";
import { Tally } from "../engine/tally.ts";
import { ControlPlane } from "./control-plane.ts";
import { IndexCap } from "./index-cap.ts";
import { SimQueue } from "./queue.ts";
import type { SimSocket } from "./socket.ts";
import {
  connectionOf,
  SimStore,
  type BatchWriteItemCommandInput,
  type BatchWriteItemCommandOutput,
  type StoreObserver,
  type Tampering,
} from "./store.ts";
import { CONNECTIONS, describe, MESSAGES } from "./tables.ts";
import { SimTask } from "./task.ts";
import { SimUpstream, type UpstreamSettings } from "./upstream.ts";
import { PRODUCER, Weather } from "./weather.ts";

export interface FleetOptions {
  readonly seed: string;
  /** Settings of all tasks, over the simulation's own. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly indexUnitsPerSecond?: number;
  /** Answers of the store carry no time, so that no worker can find its own clock wrong. */
  readonly guardBlind?: boolean;
  readonly functionsOffsetMs?: number;
  readonly tampering?: Tampering | undefined;
  /** Only what requests do is judged, not what they say, nor what a deadline should be. */
  readonly effectsOnly?: boolean;
  /** Settings that no configuration would be accepted with. */
  readonly unchecked?: Partial<WorkerSettings>;
}

/** Deadlines of upstream trouble are shortened, so that they fall into a short run; those of leases are the defaults. */
const ENVIRONMENT = {
  WS_FLEET_CONNECTIONS_TABLE: CONNECTIONS.tableName,
  WS_FLEET_MESSAGES_TABLE: MESSAGES.tableName,
  WS_FLEET_HINT_QUEUE_URL: "http://queue.test/hints",
  WS_FLEET_DLQ_URL: "http://queue.test/dead",
  WS_FLEET_SERVICE: "sim",
  WS_FLEET_MAX_CONNECTIONS: "10",
  WS_FLEET_TARGET_CONNECTIONS: "8",
  WS_FLEET_PING_INTERVAL_MS: "5000",
  WS_FLEET_IDLE_TIMEOUT_MS: "15000",
  WS_FLEET_CONNECT_GIVE_UP_MS: "20000",
  WS_FLEET_PARK_BASE_MS: "5000",
  WS_FLEET_FATAL_PARK_MS: "15000",
  WS_FLEET_MAX_PARK_MS: "20000",
  WS_FLEET_METRICS_MS: "60000",
};

/** Log lines that no fault outside the process excuses. */
const MISTAKES = new Set([
  "lease operation failed",
  "heartbeat round failed",
  "a connection's callback failed",
  "a lane's listener failed",
]);

/** Everything of one simulation, wired together. */
export class Fleet implements StoreObserver {
  readonly seeded: Seeded;
  readonly scheduler = new Scheduler();
  readonly history = new History(this.scheduler);
  readonly tally = new Tally();
  readonly violations = new Violations(this.scheduler, this.history);
  readonly weather = new Weather();
  readonly settings: WorkerSettings;
  readonly guardBlind: boolean;
  readonly store: SimStore;
  readonly queue: SimQueue;
  readonly ownership: Ownership;
  readonly stored: Stored;
  readonly tasks: SimTask[] = [];
  readonly sockets: SimSocket[] = [];
  readonly #leaseWrites: LeaseWrites;
  readonly #upstreams = new Map<string, SimUpstream>();
  readonly #controlPlane: ControlPlane;
  readonly #producer: LeaseTable;
  readonly #producerClock: Clock;
  readonly #wishes = new Map<string, Promise<void>>();
  #producing = 0;
  /** Times at which connections were or became STOPPED, and STARTED again. */
  readonly #stoppedUntilMs = new Map<string, number>();
  /** How long the hand-over in good weather took. */
  handOverMs: number | undefined;
  /** Called when a task is over. */
  onTaskStopped: (task: SimTask) => void = () => undefined;

  constructor(options: FleetOptions) {
    this.seeded = new Seeded(options.seed);
    this.guardBlind = options.guardBlind === true;
    this.settings = { ...workerSettings({ ...ENVIRONMENT, ...options.environment }), ...options.unchecked };
    this.store = new SimStore({
      scheduler: this.scheduler,
      seeded: this.seeded.fork("store"),
      weather: this.weather,
      tables: [CONNECTIONS.createInput, MESSAGES.createInput],
      connectionsTable: CONNECTIONS.tableName,
      cap: new IndexCap(this.scheduler, options.indexUnitsPerSecond ?? 1000),
      observer: this,
      tampering: options.tampering,
    });
    this.queue = new SimQueue({
      scheduler: this.scheduler,
      seeded: this.seeded.fork("queue"),
      weather: this.weather,
      settings: this.settings,
    });
    this.ownership = new Ownership({
      scheduler: this.scheduler,
      history: this.history,
      violations: this.violations,
      budgetMs: options.effectsOnly === true ? Infinity : this.settings.leaseMs - this.settings.marginMs,
      item: (id) => this.item(id),
      mayPark: (id) => this.#mayPark(id),
      stoppedSince: (id, sinceMs) => (this.#stoppedUntilMs.get(id) ?? -Infinity) >= sinceMs,
    });
    this.#leaseWrites = new LeaseWrites(this.violations, options.effectsOnly === true);
    this.stored = new Stored(this.violations, (id) => this.#upstreams.get(id));
    this.#controlPlane = new ControlPlane(this, options.functionsOffsetMs ?? 0);
    this.store.db.onStreamRecord((record, table) => {
      if (table === CONNECTIONS.tableName) this.#changed(record);
    });
    const machine = new Machine(this.scheduler, { offsetMs: 0, rate: 1, monotonicMs: 0 });
    const process = new SimProcess(PRODUCER, this.scheduler, machine, this.seeded.fork("producer"));
    this.#producerClock = process.clock;
    const limits = { attempts: 10, attemptTimeoutMs: 1000 };
    this.#producer = {
      client: this.store.client({ process, place: PRODUCER, task: undefined, ...limits }),
      tableName: CONNECTIONS.tableName,
    };
    this.#controlPlane.start();
  }

  // The fleet.

  addTask(clock: MachineClockSettings): SimTask {
    const task = new SimTask(this, `task-${this.tasks.length + 1}`, clock, this.settings);
    this.tasks.push(task);
    task.start();
    return task;
  }

  addUpstream(settings: UpstreamSettings): SimUpstream {
    const seeded = this.seeded.fork(`upstream-${settings.connectionId}`);
    const upstream = new SimUpstream(settings, this.scheduler, seeded, this.history);
    this.#upstreams.set(settings.connectionId, upstream);
    return upstream;
  }

  upstream(connectionId: string): SimUpstream {
    const upstream = this.#upstreams.get(connectionId);
    if (upstream === undefined) throw new Error(`no upstream for ${connectionId}`);
    return upstream;
  }

  get upstreams(): readonly SimUpstream[] {
    return [...this.#upstreams.values()];
  }

  socketsOf(task: string): SimSocket[] {
    return this.sockets.filter((socket) => socket.task === task && socket.live);
  }

  item(connectionId: string): RawItem | undefined {
    return this.store.db.items(CONNECTIONS.tableName).find((item) => item[CONNECTION.id]?.S === connectionId);
  }

  desiredState(connectionId: string): string | undefined {
    return this.item(connectionId)?.[CONNECTION.desiredState]?.S;
  }

  // The producer.

  start(connectionId: string, revision = 0): void {
    const { positioned } = this.upstream(connectionId);
    const query = [...(positioned ? ["cursor={cursor}"] : []), ...(revision > 0 ? [`v=${revision}`] : [])].join("&");
    const request = {
      connectionId,
      wsUrl: `wss://feed.test/${connectionId}${query === "" ? "" : `?${query}`}`,
      ...(positioned ? { upstream: { position: { pointer: "/seq", kind: "sequence" as const, initial: "0" } } } : {}),
    };
    this.#produce(connectionId, `START ${query}`, () => start(this.#producer, request));
  }

  stop(connectionId: string): void {
    this.#produce(connectionId, "STOP", () => stop(this.#producer, connectionId));
  }

  /** Deleted as soon as nobody holds it, and created again. */
  recreate(connectionId: string): void {
    this.stop(connectionId);
    this.#produce(connectionId, "DELETE", async () => {
      const deleted = await deleteConnection(this.#producer, {
        connectionId,
        nowMs: this.#producerClock.wallMs(),
        skewMs: 1000,
      });
      // Held still: asked again by and by.
      if (deleted.kind === "lost") await sleep(this.#producerClock, 500);
      return { kind: deleted.kind === "held" ? "held" : "unknown" };
    });
    this.start(connectionId);
  }

  /** The producer has nothing under way. */
  get produced(): boolean {
    return this.#producing === 0;
  }

  /** One wish at a time per connection, each repeated until the store has taken it. */
  #produce(connectionId: string, wish: string, write: () => Promise<{ kind: string }>): void {
    this.#producing++;
    const before = this.#wishes.get(connectionId) ?? Promise.resolve();
    const done = before.then(async () => {
      this.history.add("producer", connectionId, wish);
      while ((await write()).kind === "unknown");
      this.#producing--;
    });
    this.#wishes.set(connectionId, done);
  }

  // What is told by the parts.

  taskStopped(task: SimTask): void {
    this.#controlPlane.onTaskStopped(task);
    this.onTaskStopped(task);
  }

  logged(actor: string, level: string, fields: object, message: string): void {
    const { connection_id: id, ...rest } = fields as { connection_id?: string };
    const details = Object.entries(rest).filter(([name]) => name !== "epoch");
    const text = details.map(([name, value]) => `${name}=${String(value)}`).join(" ");
    this.tally.add(`log: ${message}`);
    this.history.add(actor, id, `${level}: ${message}${text === "" ? "" : ` (${text})`}`);
    if (MISTAKES.has(message)) this.violations.report("unexpected-error", id, `${actor}: ${message} (${text})`);
  }

  begun({ task }: { task: string | undefined }, operation: string, input: object): void {
    if (task === undefined || operation !== "UpdateItem") return;
    const update = input as UpdateItemCommandInput;
    this.#leaseWrites.sent(task, update);
    const values = update.ExpressionAttributeValues;
    if (values?.[":lastSeq"] === undefined) return;
    this.ownership.checkpointSent(task, connectionOf(input) ?? "", values[":mine"]?.N ?? "");
  }

  applied({ task }: { task: string | undefined }, operation: string, input: object, output: object): void {
    if (task === undefined || operation !== "BatchWriteItem") return;
    this.stored.applied(task, input as BatchWriteItemCommandInput, output as BatchWriteItemCommandOutput);
  }

  answered({ task }: { task: string | undefined }, operation: string, input: object, sentAtMs: number): void {
    const id = connectionOf(input);
    if (task === undefined || operation !== "UpdateItem" || id === undefined) return;
    this.ownership.confirmed(task, id, sentAtMs);
  }

  note({ process }: { process: string }, input: object, text: string): void {
    const id = connectionOf(input);
    this.tally.add(`attempt: ${text.replace(/ attempt \d+/, "")}`);
    if (id !== undefined) this.history.add(process, id, text);
  }

  #changed(record: Parameters<LeaseWrites["changed"]>[0]): void {
    const { applying } = this.store;
    const request = applying?.operation === "UpdateItem" ? (applying.input as UpdateItemCommandInput) : undefined;
    const { Keys, NewImage, OldImage } = record.dynamodb;
    const id = Keys[CONNECTION.id]?.S ?? "";
    this.history.add(applying?.writer.process ?? "store", id, describe(NewImage));
    this.#leaseWrites.changed(record, applying?.writer, request);
    this.ownership.itemChanged(id, NewImage);
    if (NewImage === undefined) this.stored.deleted(id);
    const stopped = [OldImage, NewImage].some((image) => image?.[CONNECTION.desiredState]?.S === "STOPPED");
    if (stopped) this.#stoppedUntilMs.set(id, this.scheduler.nowMs);
    const lastSeq = NewImage?.[CONNECTION.lastSeq]?.N;
    if (lastSeq !== undefined && lastSeq !== OldImage?.[CONNECTION.lastSeq]?.N) {
      this.stored.checkpointed(id, BigInt(lastSeq));
    }
    this.#controlPlane.onRecord(record);
  }

  #mayPark(connectionId: string): boolean {
    const { connectGiveUpMs } = this.settings;
    const troubledAtMs = this.#upstreams.get(connectionId)?.troubledAtMs ?? -Infinity;
    return this.scheduler.nowMs - troubledAtMs <= 2 * connectGiveUpMs + 20_000;
  }
}
