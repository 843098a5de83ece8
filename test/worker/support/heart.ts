import {
  DeleteItemCommand,
  PutItemCommand,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import { AnchoredClock } from "../../../shared/clock.ts";
import { leaseOf, type RawItem } from "../../../shared/connection/item.ts";
import { acquire, Deadline, type Checkpoint, type LeaseTable, type Lost } from "../../../shared/lease/index.ts";
import { silentLogger } from "../../../shared/logger.ts";
import { Heartbeater, type HeartbeaterSettings } from "../../../worker/lease/heartbeater.ts";
import { Holding } from "../../../worker/lease/holding.ts";
import type { KeepEvents } from "../../../worker/lease/keeper.ts";
import { fakeConnections } from "../../support/fake-connections.ts";
import type { Call, FakeDynamoDb, Fault } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import type { VirtualClock } from "../../support/virtual-clock.ts";
import { CountedMetrics } from "./counted-metrics.ts";
import { RecordingJournal } from "./journal.ts";
import { seeded } from "./seeded.ts";

/** The defaults of the fleet. */
export const HEART_SETTINGS: HeartbeaterSettings & { readonly skewMs: number } = {
  leaseMs: 20_000,
  marginMs: 3000,
  heartbeatMs: 5000,
  heartbeatJitter: 0.2,
  maxConcurrentLeaseOps: 64,
  attempts: 3,
  attemptTimeoutMs: 1000,
  skewMs: 1000,
};

/** What a connection is told, and what it says; tests change the answers. */
export class Told implements KeepEvents {
  readonly renewed: RawItem[] = [];
  readonly lost: Lost[] = [];
  fenced = 0;
  now: Checkpoint | undefined;
  healthy = false;

  checkpoint(): Checkpoint | undefined {
    return this.now;
  }

  clearFailures(): boolean {
    return this.healthy;
  }

  onRenewed(item: RawItem): void {
    this.renewed.push(item);
  }

  onLost(lost: Lost): void {
    this.lost.push(lost);
  }

  onFenced(): void {
    this.fenced++;
  }
}

/** A lease write as it was sent. */
export interface Write {
  readonly atMs: number;
  readonly connectionId: string;
  readonly kind: "acquire" | "renew" | "free";
  readonly expiresAtMs: number;
  readonly lastSeq: string | undefined;
}

/** A heartbeater over the in-memory store in virtual time. */
export class Heart {
  readonly clock: VirtualClock;
  readonly db: FakeDynamoDb;
  readonly table: LeaseTable;
  readonly anchored: AnchoredClock;
  readonly metrics = new CountedMetrics();
  readonly journal = new RecordingJournal();
  readonly beats: Heartbeater;
  readonly writes: Write[] = [];
  /** What becomes of each lease write from now on. */
  fault: ((write: Write) => Fault | undefined) | undefined;
  readonly #settings: typeof HEART_SETTINGS;

  constructor(settings: Partial<HeartbeaterSettings> = {}, seed = 1) {
    const { clock, dynamoDb, table } = fakeConnections();
    this.clock = clock;
    this.db = dynamoDb;
    this.table = table;
    this.#settings = { ...HEART_SETTINGS, ...settings };
    this.anchored = new AnchoredClock(clock);
    dynamoDb.faults = (call) => this.#seen(call);
    this.beats = new Heartbeater({
      table,
      clock,
      anchored: this.anchored,
      random: seeded(seed),
      logger: silentLogger,
      metrics: this.metrics,
      journal: this.journal,
      settings: this.#settings,
    });
  }

  /** Acquires a fresh connection and keeps it. */
  async hold(connectionId: string, events: KeepEvents = new Told()): Promise<Holding> {
    const { holding } = await this.acquire(connectionId);
    this.beats.keep(holding, events);
    return holding;
  }

  /** Stores a connection with these attributes and acquires it. */
  async acquire(connectionId: string, attributes: RawItem = {}): Promise<{ holding: Holding; item: RawItem }> {
    await this.put({
      connection_id: { S: connectionId },
      desired_state: { S: "STARTED" },
      ws_url: { S: "wss://feed.test/" },
      lease_expires_at_ms: { N: "0" },
      ...attributes,
    });
    const { leaseMs, marginMs, skewMs } = this.#settings;
    const deadline = Deadline.startingNow(this.clock, leaseMs - marginMs);
    const request = { connectionId, owner: "me", nowMs: this.anchored.nowMs(), leaseMs, skewMs };
    const outcome = await acquire(this.table, request);
    assert.equal(outcome.kind, "held");
    const { epoch, expiresAtMs, item } = outcome.value;
    return { holding: new Holding({ connectionId, owner: "me", epoch }, deadline, expiresAtMs), item };
  }

  async put(item: RawItem): Promise<void> {
    await this.table.client.send(new PutItemCommand({ TableName: this.table.tableName, Item: item }));
  }

  /** Changes attributes of an item behind everybody's back. */
  async change(connectionId: string, attributes: RawItem): Promise<void> {
    const names = Object.keys(attributes);
    await this.table.client.send(
      new UpdateItemCommand({
        TableName: this.table.tableName,
        Key: { connection_id: { S: connectionId } },
        UpdateExpression: `SET ${names.map((name) => `${name} = :${name}`).join(", ")}`,
        ExpressionAttributeValues: Object.fromEntries(names.map((name) => [`:${name}`, attributes[name]!])),
      }),
    );
  }

  async remove(connectionId: string): Promise<void> {
    const Key = { connection_id: { S: connectionId } };
    await this.table.client.send(new DeleteItemCommand({ TableName: this.table.tableName, Key }));
  }

  item(connectionId: string): RawItem | undefined {
    return this.db.items(this.table.tableName).find((item) => item["connection_id"]?.S === connectionId);
  }

  lease(connectionId: string): ReturnType<typeof leaseOf> {
    return leaseOf(this.item(connectionId) ?? {});
  }

  /** Writes of one kind for one connection. */
  sent(kind: Write["kind"], connectionId: string): Write[] {
    return this.writes.filter((write) => write.kind === kind && write.connectionId === connectionId);
  }

  #seen(call: Call): Fault | undefined {
    if (call.operation !== "UpdateItem") return undefined;
    const { ExpressionAttributeValues: values, Key, UpdateExpression } = call.input as UpdateItemCommandInput;
    const expiresAtMs = values?.[":expires"]?.N;
    // What the test itself changes is no lease write.
    if (expiresAtMs === undefined) return undefined;
    const write: Write = {
      atMs: this.clock.monotonicMs(),
      connectionId: Key?.["connection_id"]?.S ?? "",
      kind: /if_not_exists\(lease_epoch/.test(UpdateExpression ?? "")
        ? "acquire"
        : /REMOVE lease_owner/.test(UpdateExpression ?? "")
          ? "free"
          : "renew",
      expiresAtMs: Number(expiresAtMs),
      lastSeq: values?.[":lastSeq"]?.N,
    };
    this.writes.push(write);
    return this.fault?.(write);
  }
}
