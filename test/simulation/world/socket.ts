import type { SocketEnd } from "../../../worker/connection/close-codes.ts";
import type { SocketEvents, SocketSettings, UpstreamSocket } from "../../../worker/connection/socket.ts";
import type { Cancel } from "../../../shared/clock.ts";
import type { SimProcess } from "../engine/process.ts";
import type { Scheduler } from "../engine/scheduler.ts";
import type { Seeded } from "../engine/seeded.ts";
import type { SimMessage, SimUpstream } from "./upstream.ts";
import { Wire } from "./wire.ts";

export interface SimSocketDeps {
  readonly scheduler: Scheduler;
  readonly seeded: Seeded;
  readonly process: SimProcess;
  readonly task: string;
  readonly settings: SocketSettings;
  /** Everything that leaves towards the upstream. */
  readonly frame: (connectionId: string, kind: string) => void;
  /** The epoch under which the worker may act now. */
  readonly actingEpoch: (connectionId: string) => bigint | undefined;
}

const SERVER_PING_MS = 10_000;
/** Messages of one read. */
export const CHUNK = 16;
/** Messages that a sender may be ahead of a reader. */
export const WINDOW = 64;
/** After so long without any answer a server closes a socket of which it hears nothing. */
const SERVER_PATIENCE_MS = 30_000;

/**
 * Both ends of one WebSocket and the network between them. The worker's end behaves as the project's real socket does:
 * it sends nothing by itself without asking `mayAct`. Frames keep their order; a cut loses them silently in both
 * directions.
 */
export class SimSocket implements UpstreamSocket {
  readonly url: string;
  readonly localPort = undefined;
  /** Something beyond the protocol may have swallowed frames: the network, a dead or frozen process, a loss of the lease. */
  faulty = false;
  /** Messages that came while it waited for the reply to its close: it must not be paused then. */
  readWhileClosing = 0;
  readonly #deps: SimSocketDeps;
  readonly #upstream: SimUpstream;
  readonly #events: SocketEvents;
  readonly #mayAct: () => boolean;
  readonly #cancels = new Set<Cancel>();
  #client: "connecting" | "open" | "closing" | "ended" = "connecting";
  #server: "none" | "open" | "closed" = "none";
  readonly #upward: Wire;
  readonly #downward: Wire;
  #stalled = false;
  #paused = false;
  /** Arrived at the worker's machine, and waiting because it does not read. */
  #arrived: (() => void)[] = [];
  /** On their way, or arrived and not read. */
  readonly #unread = new Set<SimMessage>();
  /** Still at the sender. */
  readonly #unsent: SimMessage[] = [];
  #lastHeardMs = 0;
  #serverHeardAtMs = 0;

  constructor(deps: SimSocketDeps, upstream: SimUpstream, url: string, events: SocketEvents, mayAct: () => boolean) {
    this.#deps = deps;
    this.#upstream = upstream;
    this.url = url;
    this.#events = events;
    this.#mayAct = mayAct;
    this.#upward = new Wire(deps.scheduler, deps.seeded.fork("up"));
    this.#downward = new Wire(deps.scheduler, deps.seeded.fork("down"));
    deps.process.onDeath(() => this.#processDied());
    this.#after(deps.settings.handshakeTimeoutMs, () => {
      if (this.#client === "connecting") this.#fail("handshake timeout");
    });
    deps.process.dial(() => {
      deps.frame(upstream.connectionId, "a handshake");
      this.#toServer(() => this.#dialled());
    });
  }

  get connectionId(): string {
    return this.#upstream.connectionId;
  }

  get task(): string {
    return this.#deps.task;
  }

  /** The worker's end is open, or may become so. */
  get live(): boolean {
    return this.#client !== "ended" && this.#deps.process.alive;
  }

  get open(): boolean {
    return this.#client === "open" && this.#server === "open" && !this.#downward.isCut && this.#deps.process.alive;
  }

  // The worker's end.

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#lastHeardMs = this.#deps.process.clock.monotonicMs();
    this.#deps.scheduler.in(0, () => this.#deps.process.deliver(() => this.#read()));
  }

  close(graceMs: number): void {
    if (this.#client === "ended") return;
    if (this.#client !== "open") {
      this.terminate();
      return;
    }
    if (this.#paused) this.resume();
    if (!this.#mayAct()) {
      this.terminate();
      return;
    }
    this.#client = "closing";
    this.#frame("a close");
    this.#toServer(() => this.#closeArrived());
    this.#after(graceMs, () => this.terminate());
  }

  terminate(): void {
    if (this.#client === "ended") return;
    this.faulty ||= this.#client !== "closing" || this.#stalled;
    this.#toServer(() => this.#serverEnds());
    this.#end({ code: 1006, error: "terminated" });
  }

  // The upstream's end.

  /** Queued behind what the reader has not taken yet: TCP lets a sender run ahead by its window only. */
  send(messages: readonly SimMessage[]): void {
    if (this.#server !== "open" || (this.#stalled && !this.#upstream.positioned)) return;
    this.#unsent.push(...messages);
    this.#flush();
  }

  #flush(): void {
    while (this.#server === "open" && !this.#stalled && this.#unsent.length > 0 && this.#unread.size < WINDOW) {
      const chunk = this.#unsent.splice(0, CHUNK);
      for (const message of chunk) {
        this.#unread.add(message);
        if (!this.#upstream.positioned) message.sentOn.push(this);
      }
      this.#toClient(() => {
        for (const message of chunk) this.#received(message);
      });
    }
  }

  /** Ends it with a close frame, behind everything that was sent. */
  closeByServer(code: number): void {
    if (this.#server !== "open") return;
    this.#serverEnds();
    this.#toClient(() => {
      if (this.#client === "ended") return;
      if (this.#client === "open" && this.#mayAct()) this.#frame("the reply to a close");
      this.#end({ code });
    });
  }

  /** The TCP connection is reset. */
  cutDown(): void {
    this.faulty = true;
    this.#serverEnds();
    this.#toClient(() => this.#end({ code: 1006 }));
  }

  /** From now on nothing passes, and neither end is told. */
  cut(): void {
    this.#upward.cut();
    this.#downward.cut();
    this.faulty = true;
    this.#deps.scheduler.in(SERVER_PATIENCE_MS, () => this.#serverEnds());
  }

  /** The upstream neither reads nor writes, while the TCP connection stays. */
  stall(): void {
    this.#stalled = true;
    this.faulty = true;
  }

  wake(): void {
    this.#stalled = false;
    this.#flush();
  }

  #dialled(): void {
    const answer = this.#upstream.dialAnswer();
    if (answer === "silent") return;
    if (answer !== "accept") {
      this.#toClient(() => this.#end(answer));
      return;
    }
    this.#server = "open";
    this.#serverHeardAtMs = this.#deps.scheduler.nowMs;
    this.#toClient(() => this.#opened());
    this.#upstream.opened(this);
    this.#serverPings();
  }

  #serverPings(): void {
    this.#deps.scheduler.in(SERVER_PING_MS, () => {
      if (this.#server !== "open") return;
      if (this.#deps.scheduler.nowMs - this.#serverHeardAtMs > SERVER_PATIENCE_MS && !this.#stalled) {
        this.faulty = true;
        this.closeByServer(1011);
        return;
      }
      if (!this.#stalled) this.#toClient(() => this.#pinged());
      this.#serverPings();
    });
  }

  #closeArrived(): void {
    if (this.#server !== "open" || this.#stalled) return;
    this.#serverEnds();
    this.#toClient(() => this.#end({ code: 1000 }));
  }

  #serverEnds(): void {
    this.#server = "closed";
    this.#upstream.closed(this);
  }

  // What reaches the worker's end.

  #opened(): void {
    if (this.#client !== "connecting") return;
    this.#client = "open";
    this.#lastHeardMs = this.#deps.process.clock.monotonicMs();
    this.#watch();
    this.#events.onOpen();
  }

  #received(message: SimMessage): void {
    if (this.#client === "ended") return;
    const { actingEpoch, process, scheduler, task } = this.#deps;
    this.#lastHeardMs = process.clock.monotonicMs();
    this.#unread.delete(message);
    if (this.#unsent.length > 0) this.#toServer(() => this.#flush());
    if (this.#client === "closing") this.readWhileClosing++;
    message.receipts.push({ task, epoch: actingEpoch(this.connectionId), atMs: scheduler.nowMs });
    this.#events.onMessage(message.payload);
  }

  #pinged(): void {
    if (this.#client !== "open") return;
    this.#lastHeardMs = this.#deps.process.clock.monotonicMs();
    if (!this.#mayAct()) return;
    this.#frame("a pong");
    this.#toServer(() => this.#heard());
  }

  #heard(): void {
    this.#serverHeardAtMs = this.#deps.scheduler.nowMs;
  }

  #watch(): void {
    const { process, settings } = this.#deps;
    this.#after(settings.pingIntervalMs, () => {
      if (this.#client === "ended") return;
      const idleMs = process.clock.monotonicMs() - this.#lastHeardMs;
      if (!this.#paused && idleMs >= settings.idleTimeoutMs) {
        this.#fail(`nothing received for ${Math.round(idleMs)} ms`);
        return;
      }
      if (this.#mayAct() && this.#client === "open") {
        this.#frame("a ping");
        this.#toServer(() => {
          this.#heard();
          if (this.#server === "open" && !this.#stalled) this.#toClient(() => this.#ponged());
        });
      }
      this.#watch();
    });
  }

  #ponged(): void {
    this.#lastHeardMs = this.#deps.process.clock.monotonicMs();
  }

  #fail(error: string): void {
    this.faulty = true;
    this.#toServer(() => this.#serverEnds());
    this.#end({ error });
  }

  #end(end: SocketEnd): void {
    if (this.#client === "ended") return;
    this.#client = "ended";
    for (const cancel of this.#cancels) cancel();
    this.#cancels.clear();
    this.#arrived = [];
    this.#events.onEnd(end);
  }

  #processDied(): void {
    if (this.#client === "ended") return;
    this.#client = "ended";
    this.faulty = true;
    this.#toServer(() => this.#serverEnds());
  }

  // The network.

  #frame(kind: string): void {
    this.#deps.frame(this.connectionId, kind);
  }

  #toServer(fn: () => void): void {
    this.#upward.send(fn);
  }

  #toClient(fn: () => void): void {
    const { process } = this.#deps;
    this.#downward.send(() => {
      if (process.frozen) this.faulty = true;
      process.deliver(() => {
        this.#arrived.push(fn);
        this.#read();
      });
    });
  }

  /** A paused socket leaves what arrives in the network; what it had already read still comes out. */
  #read(): void {
    while (!this.#paused) {
      const next = this.#arrived.shift();
      if (next === undefined) return;
      next();
    }
  }

  #after(delayMs: number, fn: () => void): void {
    const cancel = this.#deps.process.clock.after(delayMs, () => {
      this.#cancels.delete(cancel);
      fn();
    });
    this.#cancels.add(cancel);
  }
}
