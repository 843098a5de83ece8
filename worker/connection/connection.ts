import { isDeepStrictEqual } from "node:util";
import type { AnchoredClock, Cancel, Clock } from "../../shared/clock.ts";
import { CONNECTION } from "../../shared/connection/attributes.ts";
import {
  MalformedItemError,
  parseConnectionItem,
  type ConnectionItem,
  type RawItem,
} from "../../shared/connection/item.ts";
import type { Checkpoint, Lost } from "../../shared/lease/index.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import type { Random } from "../../shared/random.ts";
import type { Holding } from "../lease/holding.ts";
import type { OwnershipJournal } from "../lease/journal.ts";
import type { Ending, KeepEvents, LeaseKeeper } from "../lease/keeper.ts";
import type { Lane, LaneEvents, LaneOptions } from "../messages/lane.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { describeEnd, type SocketEnd } from "./close-codes.ts";
import type { DialGate } from "./dial-gate.ts";
import { Inbox } from "./inbox.ts";
import { Retries, type RetrySettings } from "./retries.ts";
import type { Dial, UpstreamSocket } from "./socket.ts";
import { hostOf, targetUrl } from "./target.ts";

export type ConnectionState = "connecting" | "streaming" | "backing-off" | "draining" | "released" | "lost" | "parked";

export interface ConnectionSettings extends RetrySettings {
  readonly healthyMs: number;
  readonly closeGraceMs: number;
}

export interface ConnectionDeps {
  readonly clock: Clock;
  readonly anchored: AnchoredClock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly journal: OwnershipJournal;
  readonly keeper: LeaseKeeper;
  readonly dial: Dial;
  readonly dialGate: DialGate;
  readonly lane: (events: LaneEvents, options: LaneOptions) => Lane;
  readonly settings: ConnectionSettings;
}

/**
 * One holding's connection.
 *
 * `connecting` (waiting for its turn, then in the handshake) → `streaming` → `backing-off` → `connecting` …; from any of
 * them `draining` (close, read what is on its way, flush) → `released` or `parked`; or at once `lost`: another epoch
 * wrote, or the local deadline passed.
 *
 * Every socket is compared with the current one before its events count, and the holding is asked before every side
 * effect. What was received before the deadline stays in the lane and is stored even after a loss; nothing that comes
 * later is.
 */
export class Connection implements KeepEvents {
  readonly holding: Holding;
  /** Resolves when the holding's end is settled with the store. */
  readonly ended: Promise<void>;
  readonly #deps: ConnectionDeps;
  readonly #log: Record<string, string>;
  readonly #lane: Lane;
  readonly #inbox: Inbox;
  readonly #retries: Retries;
  readonly #freeSinceMs: number | undefined;
  #resolveEnded: () => void = () => undefined;
  #item: ConnectionItem;
  #raw: RawItem;
  #state: ConnectionState = "connecting";
  #socket: UpstreamSocket | undefined;
  #socketGone: (() => void) | undefined;
  #open = false;
  #openSinceMs = 0;
  #everOpen = false;
  #redial = false;
  #paused = false;
  #cancelWait: Cancel | undefined;

  /** @param freeSinceMs when the connection became free (wall ms), as far as the hint knew. */
  constructor(deps: ConnectionDeps, holding: Holding, raw: RawItem, item: ConnectionItem, freeSinceMs?: number) {
    this.#deps = deps;
    this.holding = holding;
    this.#raw = raw;
    this.#item = item;
    this.#freeSinceMs = freeSinceMs;
    this.#retries = new Retries(deps.clock, deps.random, deps.settings);
    this.#log = { connection_id: holding.connectionId, epoch: holding.epoch.toString() };
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    const events: LaneEvents = {
      onRefused: (seq, problem) =>
        void this.#park(`message ${seq} cannot be stored: ${problem}`, this.#retries.fatalParkMs()),
      onPressure: (paused) => this.#pressure(paused),
    };
    // Where nothing is replayed, a kill may cost the newest messages, but must leave no hole behind stored ones.
    this.#lane = deps.lane(events, { inOrder: item.kind === "unpositioned" });
    const onRegression = (last: bigint, seq: bigint): void =>
      void this.#park(`position fell from ${last} to ${seq}`, this.#retries.fatalParkMs());
    const { anchored, metrics } = deps;
    this.#inbox = new Inbox({ anchored, metrics, lane: this.#lane, onRegression }, holding, item);
  }

  get state(): ConnectionState {
    return this.#state;
  }

  get open(): boolean {
    return this.#open;
  }

  start(): void {
    this.#deps.keeper.keep(this.holding, this);
    this.#connect();
  }

  /** Ends gracefully: close, read what is on its way, flush, release with the final checkpoint. Safe to call again. */
  drain(): Promise<void> {
    void this.#finishWith("released", (checkpoint) => ({ kind: "release", checkpoint }));
    return this.ended;
  }

  // What the keeper asks and tells.

  checkpoint(): Checkpoint | undefined {
    return this.#lane.checkpoint;
  }

  clearFailures(): boolean {
    return (
      this.#item.failureCount > 0 &&
      this.#open &&
      this.#deps.clock.monotonicMs() - this.#openSinceMs >= this.#deps.settings.healthyMs
    );
  }

  onRenewed(raw: RawItem): void {
    if (this.#over()) return;
    const before = this.#raw;
    this.#raw = raw;
    // Not only when it changed: the answer to the acquire may have shown it already.
    if (raw[CONNECTION.desiredState]?.S === "STOPPED") {
      this.#deps.logger.info(this.#log, "connection stopped by its producer");
      void this.drain();
      return;
    }
    const changed = [CONNECTION.desiredState, CONNECTION.wsUrl, CONNECTION.upstream, CONNECTION.failureCount].some(
      (name) => !isDeepStrictEqual(before[name], raw[name]),
    );
    if (!changed) return;
    try {
      this.#apply(parseConnectionItem(raw));
    } catch (error) {
      if (!(error instanceof MalformedItemError)) throw error;
      this.#deps.metrics.count("MalformedItems");
      void this.#park(error.problems.join("; "), this.#retries.fatalParkMs());
    }
  }

  onLost(lost: Lost): void {
    this.#deps.logger.warn(
      { ...this.#log, reason: lost.reason },
      "lease lost: another epoch wrote, or the item is gone",
    );
    this.#state = "lost";
    this.#cutOff();
    this.#finished();
  }

  onFenced(): void {
    this.#state = "lost";
    this.#cutOff();
    void this.#deps.keeper.end(this.holding, { kind: "release", checkpoint: undefined }).then(() => this.#finished());
  }

  // Dialling and backing off.

  #connect(): void {
    this.#state = "connecting";
    const { dialGate } = this.#deps;
    const host = hostOf(this.#item.wsUrl);
    this.#cancelWait = dialGate.enter(host, () => {
      this.#cancelWait = undefined;
      let inGate = true;
      const leaveGate = (): void => {
        if (inGate) dialGate.leave(host);
        inGate = false;
      };
      if (this.#state === "connecting" && this.#mayAct()) this.#dial(leaveGate);
      else leaveGate();
    });
  }

  #dial(leaveGate: () => void): void {
    this.#retries.dialling();
    // Not with the new settings: until its end, the old socket is read by the old ones.
    this.#inbox.readBy(this.#item);
    try {
      const url = targetUrl(this.#item, this.#inbox.resumePoint);
      const socket: UpstreamSocket = this.#deps.dial(
        url,
        {
          onOpen: () => {
            leaveGate();
            if (this.#socket === socket) this.#opened(socket);
            else socket.terminate();
          },
          onMessage: (payload) => {
            if (this.#socket === socket) this.#received(payload);
          },
          onEnd: (end) => {
            leaveGate();
            if (this.#socket === socket) this.#socketEnded(end);
          },
        },
        () => this.holding.mayAct(),
      );
      this.#socket = socket;
    } catch (error) {
      leaveGate();
      void this.#park(`cannot dial: ${errorFields(error).error}`, this.#retries.fatalParkMs());
    }
  }

  #opened(socket: UpstreamSocket): void {
    if (!this.#mayAct()) return;
    const { clock, anchored, journal, logger, metrics } = this.#deps;
    this.#open = true;
    this.#openSinceMs = clock.monotonicMs();
    if (this.#state === "connecting") this.#state = "streaming";
    if (this.#paused) socket.pause();
    journal.record("open", this.holding, socket.localPort === undefined ? {} : { localPort: socket.localPort });
    if (!this.#everOpen) {
      this.#everOpen = true;
      if (this.#freeSinceMs !== undefined) {
        metrics.observe("HandoverDelay", Math.max(0, anchored.nowMs() - this.#freeSinceMs));
      }
    }
    logger.info(this.#log, "socket open");
  }

  #socketEnded(end: SocketEnd): void {
    const { clock, journal, logger, metrics } = this.#deps;
    const nowMs = clock.monotonicMs();
    const livedMs = this.#open ? nowMs - this.#openSinceMs : 0;
    const wasOpen = this.#open;
    this.#socket = undefined;
    this.#open = false;
    if (wasOpen) journal.record("closed", this.holding);
    this.#socketGone?.();
    if (this.#over() || !this.#mayAct()) return;

    const redial = this.#redial;
    this.#redial = false;
    const next = this.#retries.after(end, livedMs, redial, this.#item.failureCount);
    if (!wasOpen && !redial) metrics.count("ConnectFailures");
    logger.info({ ...this.#log, end: describeEnd(end), verdict: next.verdict }, "socket ended");
    if (next.kind === "park") {
      void this.#park(next.error, next.forMs);
      return;
    }
    this.#state = "backing-off";
    this.#cancelWait = clock.after(next.afterMs, () => {
      this.#cancelWait = undefined;
      if (this.#state !== "backing-off" || !this.#mayAct()) return;
      metrics.count("Reconnects");
      this.#connect();
    });
  }

  /** New settings of a held connection. The old socket is closed first: some feeds allow one per key. */
  #apply(item: ConnectionItem): void {
    const before = this.#item;
    if (item.kind !== before.kind) {
      void this.#park(
        `the feed must stay ${before.kind}: its stored messages are keyed so`,
        this.#retries.fatalParkMs(),
      );
      return;
    }
    this.#item = item;
    if (item.wsUrl === before.wsUrl && isDeepStrictEqual(item.upstream, before.upstream)) return;
    this.#deps.logger.info(this.#log, "settings changed: dialling anew");
    if (this.#socket !== undefined) {
      this.#redial = true;
      this.#socket.close(this.#deps.settings.closeGraceMs);
    }
  }

  // Messages.

  #received(payload: string | Uint8Array): void {
    if (!this.#mayAct()) return;
    try {
      this.#inbox.take(payload);
    } catch (error) {
      // Whatever one message can do, it does to its own connection.
      void this.#park(`message cannot be taken: ${errorFields(error).error}`, this.#retries.fatalParkMs());
    }
  }

  #pressure(paused: boolean): void {
    this.#paused = paused;
    // A closing socket must go on reading until the reply comes.
    if (this.#state === "draining") return;
    if (paused) this.#socket?.pause();
    else this.#socket?.resume();
  }

  // Ending.

  /** True when acting is allowed; otherwise fences at once, since the timer may come late. */
  #mayAct(): boolean {
    if (this.holding.mayAct()) return true;
    this.#deps.keeper.fence(this.holding);
    return false;
  }

  #over(): boolean {
    return (
      this.#state === "draining" || this.#state === "released" || this.#state === "lost" || this.#state === "parked"
    );
  }

  #park(error: string, parkMs: number): Promise<void> {
    if (!this.#over()) {
      this.#deps.metrics.count("ConnectionsParked");
      this.#deps.logger.warn({ ...this.#log, park_ms: Math.round(parkMs), last_error: error }, "connection parked");
    }
    return this.#finishWith("parked", (checkpoint) => ({ kind: "park", checkpoint, parkMs, error }));
  }

  async #finishWith(
    state: "released" | "parked",
    ending: (checkpoint: Checkpoint | undefined) => Ending,
  ): Promise<void> {
    // A worker that was frozen may be asked to end before its expiry timer runs: past the deadline it just stops.
    if (this.#over() || !this.#mayAct()) return;
    this.#state = "draining";
    this.#cancelWait?.();
    this.#cancelWait = undefined;
    if (this.#socket !== undefined) {
      const gone = new Promise<void>((resolve) => {
        this.#socketGone = resolve;
      });
      this.#socket.close(this.#deps.settings.closeGraceMs);
      await gone;
    }
    await this.#lane.flush();
    // Fenced or lost in the meantime: those paths settle the holding themselves.
    if (this.#isLost()) return;
    // From here on the keeper tells of no loss and no fence any more.
    await this.#deps.keeper.end(this.holding, ending(this.#lane.checkpoint));
    this.#state = state;
    this.#deps.logger.info(
      { ...this.#log, last_seq: this.#lane.checkpoint?.lastSeq.toString() },
      `connection ${state}`,
    );
    this.#finished();
  }

  #isLost(): boolean {
    return this.#state === "lost";
  }

  #cutOff(): void {
    this.#cancelWait?.();
    this.#cancelWait = undefined;
    this.#socket?.terminate();
    this.#socketGone?.();
  }

  #finished(): void {
    this.#lane.close();
    this.#resolveEnded();
  }
}
