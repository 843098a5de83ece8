import { connect, type Socket } from "node:net";
import type { Clock } from "../../../shared/clock.ts";
import type { Random } from "../../../shared/random.ts";
import type { InboundFrame } from "../../upstream/record.ts";
import { combined } from "./effect.ts";
import type { Fault } from "./fault.ts";
import { FrameWatch } from "./frame-watch.ts";
import { Pipe } from "./pipe.ts";

/** What a proxy knows of one WebSocket connection through it. Times are host clock milliseconds. */
export interface LinkRecord {
  /** The client's local port. */
  readonly clientPort: number;
  readonly openedAtMs: number;
  /** The port under which the target sees the connection; undefined until it is made. */
  serverPort: number | undefined;
  /** What the client sent, when it came here. */
  frames: readonly InboundFrame[];
  /** From here on something that the target sent was held back by a fault and never reached the client. */
  lostFromMs: number | undefined;
  /** A fault broke the connection off. */
  brokenAtMs: number | undefined;
}

export interface LinkDeps {
  readonly target: { readonly host: string; readonly port: number };
  readonly clock: Clock;
  readonly random: Random;
  readonly webSocket: boolean;
  readonly onBytes: (direction: "out" | "in", bytes: number) => void;
  /** Faults that are on, now and for this connection. */
  readonly faultsFor: (connectionId: string | undefined) => readonly Fault[];
  readonly onClosed: (link: Link) => void;
}

/** One connection through a proxy: two sockets and a pipe each way. */
export class Link {
  readonly record: LinkRecord;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #deps: LinkDeps;
  readonly #out: Pipe;
  readonly #in: Pipe;
  readonly #watch: FrameWatch | undefined;
  #faults: readonly Fault[] = [];
  #clientEnded = false;
  #open = 2;

  constructor(client: Socket, deps: LinkDeps) {
    const { clock, random, target, webSocket } = deps;
    this.#client = client;
    this.#deps = deps;
    this.#watch = webSocket ? new FrameWatch() : undefined;
    this.record = {
      clientPort: client.remotePort ?? 0,
      openedAtMs: clock.monotonicMs(),
      serverPort: undefined,
      frames: this.#watch?.frames ?? [],
      lostFromMs: undefined,
      brokenAtMs: undefined,
    };
    this.#server = connect({ ...target, allowHalfOpen: true, noDelay: true });
    this.#server.once("connect", () => (this.record.serverPort = this.#server.localPort));
    for (const socket of [client, this.#server]) {
      // What a broken connection means is told by its close, which always follows.
      socket.on("error", () => undefined);
      socket.once("close", () => this.#closed());
    }
    this.#out = new Pipe(client, this.#server, {
      clock,
      random,
      onBytes: (chunk) => this.#passOut(chunk),
      onSourceEnd: () => this.#onClientEnd(),
      // The target is gone: it did not say anything that could be lost.
      onLost: () => undefined,
    });
    this.#in = new Pipe(this.#server, client, {
      clock,
      random,
      onBytes: (chunk) => this.#passIn(chunk),
      onSourceEnd: () => undefined,
      onLost: (atMs) => this.#lost(atMs),
    });
    this.refresh();
  }

  /** Takes over what is on now. */
  refresh(): void {
    const before = this.#faults;
    this.#faults = this.#deps.faultsFor(this.#connectionId);
    for (const fault of this.#faults) if (!before.includes(fault)) fault.connections += 1;
    const effects = this.#faults.map(({ effect }) => effect);
    this.#out.disturb(combined(effects, "out"));
    this.#in.disturb(combined(effects, "in"));
    if (this.#faults.some(({ effect }) => effect.kind === "cut")) this.break();
  }

  hitBy(fault: Fault): boolean {
    return this.#faults.includes(fault);
  }

  /** Resets both ends. */
  break(): void {
    this.record.brokenAtMs ??= this.#deps.clock.monotonicMs();
    this.destroy();
  }

  destroy(): void {
    this.#client.resetAndDestroy();
    // A socket that is not connected yet cannot be reset.
    if (this.#server.connecting) this.#server.destroy();
    else this.#server.resetAndDestroy();
  }

  get #connectionId(): string | undefined {
    return this.#watch?.path?.split(/[/?]/u)[2];
  }

  #passOut(chunk: Buffer): void {
    const known = this.#connectionId;
    this.#watch?.feed(chunk, this.#deps.clock.monotonicMs());
    // Only now it is known whose connection it is, and which faults are meant for it.
    if (known !== this.#connectionId) this.refresh();
    this.#count("out", chunk.length);
  }

  #passIn(chunk: Buffer): void {
    // The client has gone, and a fault kept the target from knowing in time.
    if (this.#clientEnded && this.#out.endWasHeld) this.#lost(this.#deps.clock.monotonicMs());
    this.#count("in", chunk.length);
  }

  #count(direction: "out" | "in", bytes: number): void {
    for (const fault of this.#faults) fault.bytes += bytes;
    this.#deps.onBytes(direction, bytes);
  }

  #onClientEnd(): void {
    this.#clientEnded = true;
    const heldSinceMs = this.#in.heldSinceMs;
    if (heldSinceMs !== undefined) this.#lost(heldSinceMs);
  }

  #lost(atMs: number): void {
    this.record.lostFromMs = Math.min(this.record.lostFromMs ?? Infinity, atMs);
  }

  #closed(): void {
    this.#open -= 1;
    if (this.#open > 0) return;
    this.#out.stop();
    this.#in.stop();
    this.#deps.onClosed(this);
  }
}
