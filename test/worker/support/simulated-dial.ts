import type { Clock } from "../../../shared/clock.ts";
import type { SocketEnd } from "../../../worker/connection/close-codes.ts";
import type { Dial, SocketEvents, UpstreamSocket } from "../../../worker/connection/socket.ts";

/** One dialled socket; the test plays the peer. */
export class SimulatedSocket implements UpstreamSocket {
  readonly url: string;
  readonly dialledAtMs: number;
  readonly mayAct: () => boolean;
  state: "dialling" | "open" | "closing" | "ended" = "dialling";
  paused = false;
  localPort: number | undefined;
  readonly #clock: Clock;
  readonly #events: SocketEvents;

  constructor(clock: Clock, url: string, events: SocketEvents, mayAct: () => boolean) {
    this.#clock = clock;
    this.#events = events;
    this.url = url;
    this.mayAct = mayAct;
    this.dialledAtMs = clock.monotonicMs();
  }

  // What the connection does.

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  close(graceMs: number): void {
    if (this.state === "dialling") this.terminate();
    if (this.state !== "open") return;
    this.state = "closing";
    this.#clock.after(graceMs, () => this.terminate());
  }

  terminate(): void {
    this.#end({ code: 1006, error: "terminated" });
  }

  // What the peer and the network do.

  open(): void {
    if (this.state !== "dialling") return;
    this.state = "open";
    this.localPort = 40_000;
    this.#events.onOpen();
  }

  send(...payloads: (string | Uint8Array)[]): void {
    for (const payload of payloads) {
      if (this.state === "open" || this.state === "closing") this.#events.onMessage(payload);
    }
  }

  /** The peer's close, or its reply to ours; or the end of a handshake. */
  end(end: SocketEnd = { code: 1000 }): void {
    this.#end(end);
  }

  /** Breaks the rule that nothing comes after the end. */
  sayThoughEnded(payload: string): void {
    this.#events.onMessage(payload);
    this.#events.onOpen();
    this.#events.onEnd({ code: 4004 });
  }

  #end(end: SocketEnd): void {
    if (this.state === "ended") return;
    this.state = "ended";
    this.#events.onEnd(end);
  }
}

export class SimulatedDial {
  readonly sockets: SimulatedSocket[] = [];
  /** Thrown instead of dialling. */
  failure: Error | undefined;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly dial: Dial = (url, events, mayAct) => {
    if (this.failure !== undefined) throw this.failure;
    const socket = new SimulatedSocket(this.#clock, url, events, mayAct);
    this.sockets.push(socket);
    return socket;
  };

  get last(): SimulatedSocket {
    const socket = this.sockets.at(-1);
    if (socket === undefined) throw new Error("nothing was dialled");
    return socket;
  }
}
