import assert from "node:assert/strict";
import { parseConnectionItem, type RawItem } from "../../../shared/connection/item.ts";
import { silentLogger, type Logger } from "../../../shared/logger.ts";
import type { Random } from "../../../shared/random.ts";
import { Connection, type ConnectionSettings, type ConnectionState } from "../../../worker/connection/connection.ts";
import { DialGate } from "../../../worker/connection/dial-gate.ts";
import type { Holding } from "../../../worker/lease/holding.ts";
import type { Lane, LaneEvents, LaneOptions } from "../../../worker/messages/lane.ts";
import type { WorkerMetric } from "../../../worker/telemetry/metrics.ts";
import type { VirtualClock } from "../../support/virtual-clock.ts";
import { Heart } from "./heart.ts";
import { ScriptedLane } from "./scripted-lane.ts";
import { SimulatedDial, type SimulatedSocket } from "./simulated-dial.ts";

/** The defaults of the fleet. */
export const LINE_SETTINGS: ConnectionSettings = {
  reconnectBaseMs: 250,
  reconnectCapMs: 10_000,
  connectGiveUpMs: 60_000,
  parkBaseMs: 15_000,
  fatalParkMs: 900_000,
  maxParkMs: 3_600_000,
  healthyMs: 60_000,
  closeGraceMs: 1000,
};

const SEQUENCE = (pointer: string): RawItem => ({
  upstream: { M: { position: { M: { pointer: { S: pointer }, kind: { S: "sequence" } } } } },
});
export const POSITIONED: RawItem = { ...SEQUENCE("/seq"), ws_url: { S: "wss://feed.test/?from={cursor}" } };
export const positionedBy = (pointer: string): RawItem => ({ ...POSITIONED, ...SEQUENCE(pointer) });

/** What a positioned feed of these tests sends. */
export const at = (seq: bigint | number): string => `{"seq":${seq}}`;

export interface LineOptions {
  readonly item?: RawItem;
  readonly settings?: Partial<ConnectionSettings>;
  readonly random?: Random;
  readonly logger?: Logger;
  readonly freeSinceMs?: number;
  readonly dialGate?: (clock: VirtualClock) => DialGate;
  /** A lane of another making; `lane` then is not there. */
  readonly makeLane?: (events: LaneEvents, options: LaneOptions, heart: Heart) => Lane;
}

/** One connection with a real lease (in memory, in virtual time), a peer and a lane that the test plays. */
export class Line {
  readonly heart: Heart;
  readonly clock: VirtualClock;
  readonly connection: Connection;
  readonly holding: Holding;
  readonly dial: SimulatedDial;
  readonly dialGate: DialGate;
  #lane: ScriptedLane | undefined;
  ended = false;

  private constructor(heart: Heart, held: { holding: Holding; item: RawItem }, options: LineOptions) {
    this.heart = heart;
    this.clock = heart.clock;
    this.holding = held.holding;
    this.dial = new SimulatedDial(heart.clock);
    this.dialGate = options.dialGate?.(heart.clock) ?? new DialGate(heart.clock, 50, 1000);
    this.connection = new Connection(
      {
        clock: heart.clock,
        anchored: heart.anchored,
        random: options.random ?? (() => 0.5),
        logger: options.logger ?? silentLogger,
        metrics: heart.metrics,
        journal: heart.journal,
        keeper: heart.beats,
        dial: this.dial.dial,
        dialGate: this.dialGate,
        lane: (events, laneOptions) =>
          options.makeLane?.(events, laneOptions, heart) ?? (this.#lane = new ScriptedLane(events, laneOptions)),
        settings: { ...LINE_SETTINGS, ...options.settings },
      },
      held.holding,
      held.item,
      parseConnectionItem(held.item),
      options.freeSinceMs,
    );
    void this.connection.ended.then(() => (this.ended = true));
  }

  /** Acquires `c` and starts its connection; it is dialling then, unless its gate is closed. */
  static async start(options: LineOptions = {}): Promise<Line> {
    const heart = new Heart();
    const line = new Line(heart, await heart.acquire("c", options.item), options);
    line.connection.start();
    return line;
  }

  /** As {@link start}, but the answer to the acquire already shows a connection that is STOPPED. */
  static async stoppedBeforeItBegan(): Promise<Line> {
    const heart = new Heart();
    const { holding } = await heart.acquire("c");
    await heart.change("c", { desired_state: { S: "STOPPED" } });
    const line = new Line(heart, { holding, item: heart.item("c") ?? {} }, {});
    line.connection.start();
    return line;
  }

  /** As {@link start}, with the first socket open. */
  static async streaming(options: LineOptions = {}): Promise<Line> {
    const line = await Line.start(options);
    line.socket.open();
    assert.equal(line.state, "streaming");
    return line;
  }

  get state(): ConnectionState {
    return this.connection.state;
  }

  get lane(): ScriptedLane {
    assert.ok(this.#lane);
    return this.#lane;
  }

  /** The socket dialled last. */
  get socket(): SimulatedSocket {
    return this.dial.last;
  }

  get item(): RawItem {
    return this.heart.item("c") ?? {};
  }

  get lease(): ReturnType<Heart["lease"]> {
    return this.heart.lease("c");
  }

  /** Waits for the n-th dial (from 1) and returns its socket. */
  async dialled(n: number, withinMs = 60_000): Promise<SimulatedSocket> {
    await this.clock.advanceUntil(() => this.dial.sockets.length >= n, withinMs);
    const socket = this.dial.sockets[n - 1];
    assert.ok(socket);
    return socket;
  }

  /** Changes the item as a producer does, and waits for the heartbeat that brings it. */
  async change(attributes: RawItem): Promise<void> {
    await this.heart.change("c", attributes);
    const before = this.heart.journal.events().filter((event) => event === "renewed").length;
    await this.clock.advanceUntil(
      () => this.heart.journal.events().filter((event) => event === "renewed").length > before,
      7000,
    );
  }

  /** Waits until the holding's end is settled with the store. */
  async untilEnded(withinMs = 10_000): Promise<void> {
    await this.clock.advanceUntil(() => this.ended, withinMs);
  }

  count(metric: WorkerMetric): number {
    return this.heart.metrics.counted(metric);
  }
}
