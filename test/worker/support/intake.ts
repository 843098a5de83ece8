import { PutItemCommand } from "@aws-sdk/client-dynamodb";
import path from "node:path";
import { readServerlessFile } from "../../../local/serverless-file.ts";
import { AnchoredClock, type Clock } from "../../../shared/clock.ts";
import { leaseOf, type RawItem } from "../../../shared/connection/item.ts";
import type { LeaseTable } from "../../../shared/lease/index.ts";
import { silentLogger } from "../../../shared/logger.ts";
import type { Random } from "../../../shared/random.ts";
import { Connection } from "../../../worker/connection/connection.ts";
import { DialGate } from "../../../worker/connection/dial-gate.ts";
import type { Dial } from "../../../worker/connection/socket.ts";
import { Connections } from "../../../worker/connections.ts";
import { Acquirer } from "../../../worker/intake/acquirer.ts";
import { TokenBucket } from "../../../worker/token-bucket.ts";
import { Heartbeater } from "../../../worker/lease/heartbeater.ts";
import type { LaneEvents, LaneOptions } from "../../../worker/messages/lane.ts";
import { FakeDynamoDb } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { CountedMetrics } from "./counted-metrics.ts";
import { HEART_SETTINGS } from "./heart.ts";
import { RecordingJournal } from "./journal.ts";
import { LINE_SETTINGS } from "./line.ts";
import { ScriptedLane } from "./scripted-lane.ts";
import { seeded } from "./seeded.ts";
import { SimulatedDial } from "./simulated-dial.ts";

export interface IntakeOptions {
  readonly maxConnections?: number;
  readonly tokensPerSecond?: number;
  readonly burst?: number;
  readonly random?: Random;
  /** A real dialer instead of played sockets. */
  readonly dial?: Dial;
}

export const INTAKE_SETTINGS = { ...HEART_SETTINGS, acquireBudgetMs: 2500, fatalParkMs: 900_000 };

/** What a worker takes connections with: real parts over an in-memory table, on the clock of the test; sockets are played. */
export class Intake<C extends Clock> {
  readonly clock: C;
  readonly db: FakeDynamoDb;
  readonly table: LeaseTable;
  readonly anchored: AnchoredClock;
  readonly metrics = new CountedMetrics();
  readonly journal = new RecordingJournal();
  readonly random: Random;
  readonly connections: Connections;
  readonly heartbeater: Heartbeater;
  readonly tokens: TokenBucket;
  readonly dial: SimulatedDial;
  readonly acquirer: Acquirer;
  readonly lanes: ScriptedLane[] = [];
  /** Thrown instead of making a connection of what was acquired. */
  mistake: Error | undefined;

  constructor(clock: C, options: IntakeOptions = {}) {
    this.clock = clock;
    this.random = options.random ?? seeded(1);
    const { tables } = readServerlessFile({ projectRoot: path.join(import.meta.dirname, "../../..") });
    const definition = tables.find((table) => table.logicalId === "ConnectionsTable");
    if (definition === undefined) throw new Error("serverless.yml has no ConnectionsTable");
    this.db = new FakeDynamoDb({ clock, tables: [definition.createInput] });
    this.table = { client: this.db.client("lease"), tableName: definition.tableName };
    this.anchored = new AnchoredClock(clock);
    this.connections = new Connections(options.maxConnections ?? 10);
    this.tokens = new TokenBucket(clock, options.tokensPerSecond ?? 1000, options.burst ?? 1000);
    this.dial = new SimulatedDial(clock);
    const common = {
      table: this.table,
      clock,
      anchored: this.anchored,
      random: this.random,
      logger: silentLogger,
      metrics: this.metrics,
      journal: this.journal,
    };
    this.heartbeater = new Heartbeater({ ...common, settings: HEART_SETTINGS });
    const connectionDeps = {
      ...common,
      keeper: this.heartbeater,
      dial: options.dial ?? this.dial.dial,
      dialGate: new DialGate(clock, 50, 1000),
      lane: (events: LaneEvents, laneOptions: LaneOptions) => {
        const lane = new ScriptedLane(events, laneOptions);
        this.lanes.push(lane);
        return lane;
      },
      settings: LINE_SETTINGS,
    };
    this.acquirer = new Acquirer({
      ...common,
      owner: "me",
      keeper: this.heartbeater,
      connections: this.connections,
      settings: INTAKE_SETTINGS,
      connect: (holding, raw, item, freeSinceMs) => {
        if (this.mistake !== undefined) throw this.mistake;
        return new Connection(connectionDeps, holding, raw, item, freeSinceMs);
      },
    });
  }

  /** Stores connections that are free, or as the attributes say. */
  async seed(ids: string | readonly string[], attributes: RawItem = {}): Promise<void> {
    for (const id of typeof ids === "string" ? [ids] : ids) {
      await this.table.client.send(
        new PutItemCommand({
          TableName: this.table.tableName,
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
  }

  item(id: string): RawItem | undefined {
    return this.db.items(this.table.tableName).find((item) => item["connection_id"]?.S === id);
  }

  lease(id: string): ReturnType<typeof leaseOf> {
    return leaseOf(this.item(id) ?? {});
  }

  get heldIds(): string[] {
    return this.connections.all().map(({ holding }) => holding.connectionId);
  }

  /** Leaves no timer and no lease behind. */
  async end(): Promise<void> {
    this.db.faults = undefined;
    await this.acquirer.stop();
    for (const socket of this.dial.sockets) socket.terminate();
    await Promise.all(this.connections.all().map((connection) => connection.drain()));
    this.heartbeater.stop();
  }
}
