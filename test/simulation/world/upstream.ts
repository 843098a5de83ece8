import type { SocketEnd } from "../../../worker/connection/close-codes.ts";
import type { History } from "../engine/history.ts";
import type { Scheduler } from "../engine/scheduler.ts";
import type { Seeded } from "../engine/seeded.ts";
import type { SimSocket } from "./socket.ts";

/** One message of an upstream, and what became of it. */
export interface SimMessage {
  readonly seq: bigint;
  readonly payload: string;
  readonly sentAtMs: number;
  /** Every time it was handed to a worker's socket; without epoch: the worker had no right to act any more. */
  readonly receipts: { readonly task: string; readonly epoch: bigint | undefined; readonly atMs: number }[];
  /** Of a live feed: the sockets it was sent on. */
  readonly sentOn: SimSocket[];
}

/** How an upstream answers a dial. */
export type DialAnswer = "accept" | "silent" | SocketEnd;

export interface UpstreamSettings {
  readonly connectionId: string;
  /** Replays from a position; otherwise it sends to whoever listens, once. */
  readonly positioned: boolean;
  readonly firstSeq: bigint;
  readonly inclusive: boolean;
  readonly meanIntervalMs: number;
}

/** One feed. */
export class SimUpstream {
  readonly connectionId: string;
  readonly positioned: boolean;
  readonly sent: SimMessage[] = [];
  readonly links = new Set<SimSocket>();
  /** When it last did something for which a worker may park. */
  troubledAtMs = -Infinity;
  dialAnswer: () => DialAnswer = () => "accept";
  readonly #settings: UpstreamSettings;
  readonly #scheduler: Scheduler;
  readonly #seeded: Seeded;
  readonly #history: History;
  readonly #byPayload = new Map<string, SimMessage>();
  #seq: bigint;
  #producing = true;

  constructor(settings: UpstreamSettings, scheduler: Scheduler, seeded: Seeded, history: History) {
    this.connectionId = settings.connectionId;
    this.positioned = settings.positioned;
    this.#settings = settings;
    this.#scheduler = scheduler;
    this.#seeded = seeded;
    this.#history = history;
    this.#seq = settings.firstSeq;
    this.#next();
  }

  find(payload: string): SimMessage | undefined {
    return this.#byPayload.get(payload);
  }

  stopProducing(): void {
    this.#producing = false;
  }

  trouble(text: string): void {
    this.troubledAtMs = this.#scheduler.nowMs;
    this.#history.add("upstream", this.connectionId, text);
  }

  /** Sends `count` messages at once. */
  flood(count: number): void {
    this.#history.add("upstream", this.connectionId, `sends ${count} messages at once`);
    this.#produce(count);
  }

  /** A socket was accepted: a positioned feed first replays what came after the cursor. */
  opened(socket: SimSocket): void {
    this.links.add(socket);
    if (!this.positioned) return;
    const cursor = BigInt(new URL(socket.url).searchParams.get("cursor") ?? "0");
    const replay = this.sent.filter(({ seq }) => (this.#settings.inclusive ? seq >= cursor : seq > cursor));
    socket.send(replay);
  }

  closed(socket: SimSocket): void {
    this.links.delete(socket);
  }

  #next(): void {
    this.#scheduler.in(this.#seeded.wait(this.#settings.meanIntervalMs), () => {
      if (!this.#producing) return;
      this.#produce(1);
      this.#next();
    });
  }

  #produce(count: number): void {
    const chunk: SimMessage[] = [];
    for (let i = 0; i < count; i++) {
      this.#seq += BigInt(this.positioned ? this.#seeded.int(1, 3) : 1);
      const number = this.sent.length + 1;
      // Written by hand: a position may be larger than a double can tell.
      const payload = `{"seq":${this.#seq},"id":"${this.connectionId}:${number}"}`;
      const message = { seq: this.#seq, payload, sentAtMs: this.#scheduler.nowMs, receipts: [], sentOn: [] };
      this.sent.push(message);
      this.#byPayload.set(payload, message);
      chunk.push(message);
    }
    for (const link of this.links) link.send(chunk);
  }
}
