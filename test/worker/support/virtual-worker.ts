import { PutItemCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import path from "node:path";
import { readServerlessFile } from "../../../local/serverless-file.ts";
import { AnchoredClock, type Clock } from "../../../shared/clock.ts";
import { leaseOf, type RawItem } from "../../../shared/connection/item.ts";
import type { MetricDatum } from "../../../shared/metrics/sink.ts";
import { ClockGuard } from "../../../worker/lease/clock-guard.ts";
import { workerSettings } from "../../../worker/settings.ts";
import { CLOCK_PROBES, Worker } from "../../../worker/worker.ts";
import { FakeDynamoDb } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import { recordingLogger } from "../../functions/support/log.ts";
import { RecordingJournal } from "./journal.ts";
import { MemoryQueue } from "./memory-queue.ts";
import { seeded } from "./seeded.ts";
import { SimulatedDial } from "./simulated-dial.ts";

/** A whole worker in virtual time: only the network is played. */
export class VirtualWorker {
  readonly clock: VirtualClock;
  /** The worker's own machine: its wall clock can be stepped by itself. */
  readonly machine: Clock & { stepWall(ms: number): void };
  readonly db: FakeDynamoDb;
  readonly queue: MemoryQueue;
  readonly dial: SimulatedDial;
  readonly journal = new RecordingJournal();
  readonly logger = recordingLogger();
  readonly published: MetricDatum[][] = [];
  readonly guard: ClockGuard;
  readonly anchored: AnchoredClock;
  readonly worker: Worker;
  readonly #connectionsTable: string;
  readonly #messagesTable: string;

  constructor(environment: Record<string, string> = {}) {
    this.clock = new VirtualClock();
    this.machine = this.clock.machine();
    const { tables } = readServerlessFile({ projectRoot: path.join(import.meta.dirname, "../../..") });
    const named = (logicalId: string) => {
      const table = tables.find((one) => one.logicalId === logicalId);
      if (table === undefined) throw new Error(`serverless.yml has no ${logicalId}`);
      return table;
    };
    this.#connectionsTable = named("ConnectionsTable").tableName;
    this.#messagesTable = named("MessagesTable").tableName;
    this.db = new FakeDynamoDb({
      clock: this.clock,
      tables: [named("ConnectionsTable").createInput, named("MessagesTable").createInput],
    });
    const settings = workerSettings({
      WS_FLEET_CONNECTIONS_TABLE: this.#connectionsTable,
      WS_FLEET_MESSAGES_TABLE: this.#messagesTable,
      WS_FLEET_HINT_QUEUE_URL: "http://127.0.0.1/hints",
      WS_FLEET_DLQ_URL: "http://127.0.0.1/dead",
      WS_FLEET_SERVICE: "test",
      ...environment,
    });
    this.queue = new MemoryQueue(this.clock, settings.longPollMs);
    this.dial = new SimulatedDial(this.machine);
    this.anchored = new AnchoredClock(this.machine);
    this.guard = new ClockGuard(this.machine, {
      skewMs: settings.skewMs,
      windowMs: 60_000,
      minObservations: CLOCK_PROBES,
    });
    this.worker = new Worker({
      owner: "me",
      settings,
      clock: this.machine,
      anchored: this.anchored,
      random: seeded(1),
      logger: this.logger,
      leaseClient: this.db.client("lease"),
      messageClient: this.db.client("messages"),
      queue: this.queue,
      dial: this.dial.dial,
      sink: {
        publish: (data) => {
          this.published.push([...data]);
          return Promise.resolve();
        },
      },
      journal: this.journal,
      clockGuard: this.guard,
    });
  }

  /** Stores free connections, hints at them, and plays peers that open every socket. */
  async take(...ids: string[]): Promise<void> {
    for (const id of ids) await this.put(id);
    this.queue.hint(...ids);
    await this.clock.advanceUntil(() => {
      for (const socket of this.dial.sockets) socket.open();
      return this.worker.health()["openSockets"] === ids.length;
    }, 30_000);
  }

  async put(id: string, attributes: RawItem = {}): Promise<void> {
    await this.db.client().send(
      new PutItemCommand({
        TableName: this.#connectionsTable,
        Item: {
          connection_id: { S: id },
          desired_state: { S: "STARTED" },
          ws_url: { S: "wss://feed.test/" },
          lease_expires_at_ms: { N: "0" },
          ...attributes,
        },
      }),
    );
  }

  /** Another worker takes the lease, as it may after an expiry. */
  async steal(id: string): Promise<void> {
    await this.db.client().send(
      new UpdateItemCommand({
        TableName: this.#connectionsTable,
        Key: { connection_id: { S: id } },
        UpdateExpression: "SET lease_owner = :other, lease_epoch = lease_epoch + :one, lease_expires_at_ms = :far",
        ExpressionAttributeValues: {
          ":other": { S: "other" },
          ":one": { N: "1" },
          ":far": { N: String(this.clock.wallMs() + 3_600_000) },
        },
      }),
    );
  }

  lease(id: string): ReturnType<typeof leaseOf> {
    return leaseOf(this.item(id) ?? {});
  }

  item(id: string): RawItem | undefined {
    return this.db.items(this.#connectionsTable).find((item) => item["connection_id"]?.S === id);
  }

  get stored(): string[] {
    return this.db.items(this.#messagesTable).map((item) => item["payload"]?.S ?? "");
  }

  /** Fails every request for messages, or for leases, from now on; `undefined` heals both. */
  breakStore(client: "messages" | "lease" | undefined): void {
    this.db.faults =
      client === undefined ? undefined : (call) => (call.client === client ? { kind: "throttle" } : undefined);
  }

  said(message: string): boolean {
    return this.logger.lines.some((line) => line.message.includes(message));
  }
}
