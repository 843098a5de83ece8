import type { Socket } from "node:net";
import type { Cancel, Clock } from "../../../shared/clock.ts";
import type { Random } from "../../../shared/random.ts";
import { CLEAR, isClear, type Disturbance } from "./effect.ts";

export interface PipeDeps {
  readonly clock: Clock;
  readonly random: Random;
  /** Told of every chunk when it arrives here, before anything is done to it. */
  readonly onBytes: (chunk: Buffer) => void;
  /** The source ended or broke off; what it sent before may still be under way. */
  readonly onSourceEnd: () => void;
  /** Bytes that a fault had held back will never arrive; the time at which they came here. */
  readonly onLost: (receivedAtMs: number) => void;
}

type Item = {
  readonly receivedAtMs: number;
  dueMs: number;
  /** A fault applied to it at some time since it came. */
  held: boolean;
} & ({ readonly bytes: Buffer } | { readonly last: "end" | "reset" });

/** The sender is slowed down, as by a full receive window, when so much is under way. */
const HIGH_WATER_BYTES = 256 * 1024;
const LOW_WATER_BYTES = 64 * 1024;
/** At a low bandwidth a chunk arrives in pieces, so many a second. */
const PIECES_PER_SECOND = 10;
const SMALLEST_PIECE = 64;

/**
 * One direction of a connection: takes what the source sends, and gives it to the sink in order, when the network lets it.
 * Memory is bounded: beyond the high water the source is not read.
 */
export class Pipe {
  readonly #source: Socket;
  readonly #sink: Socket;
  readonly #deps: PipeDeps;
  #queue: Item[] = [];
  #bytes = 0;
  #disturbance = CLEAR;
  /** No item is due before the one in front of it. */
  #lastDueMs = 0;
  #sinkFull = false;
  #sinkGone = false;
  #end: Item | undefined;
  #cancel: Cancel = () => undefined;

  constructor(source: Socket, sink: Socket, deps: PipeDeps) {
    this.#source = source;
    this.#sink = sink;
    this.#deps = deps;
    source.on("data", (chunk: Buffer) => this.#receive(chunk));
    source.on("end", () => this.#last("end"));
    source.on("close", () => this.#last("reset"));
    sink.on("drain", () => {
      this.#sinkFull = false;
      this.#pump();
    });
    sink.on("close", () => this.#discard());
  }

  /** Whether a fault kept the sink from learning of the source's end when it came, even if it knows by now. */
  get endWasHeld(): boolean {
    return this.#end?.held === true;
  }

  /** When the first of the bytes came that a fault holds back. */
  get heldSinceMs(): number | undefined {
    return this.#queue.find((item) => "bytes" in item && item.held)?.receivedAtMs;
  }

  disturb(disturbance: Disturbance): void {
    this.#disturbance = disturbance;
    const nowMs = this.#deps.clock.monotonicMs();
    if (isClear(disturbance)) {
      for (const item of this.#queue) item.dueMs = Math.min(item.dueMs, nowMs);
      this.#lastDueMs = nowMs;
    } else for (const item of this.#queue) item.held = true;
    this.#pump();
  }

  stop(): void {
    this.#cancel();
    this.#queue = [];
  }

  #receive(chunk: Buffer): void {
    this.#deps.onBytes(chunk);
    if (this.#sinkGone) return;
    const { bytesPerSecond } = this.#disturbance;
    const piece = Math.max(SMALLEST_PIECE, Math.ceil(bytesPerSecond / PIECES_PER_SECOND));
    for (let from = 0; from < chunk.length; from += piece) {
      const bytes = chunk.subarray(from, from + piece);
      this.#queue.push({ bytes, ...this.#schedule(bytes.length) });
      this.#bytes += bytes.length;
    }
    if (this.#bytes > HIGH_WATER_BYTES) this.#source.pause();
    this.#pump();
  }

  /** A socket that closes after its end has said nothing new. */
  #last(last: "end" | "reset"): void {
    if (this.#end !== undefined) return;
    this.#end = { last, ...this.#schedule(0) };
    if (!this.#sinkGone) this.#queue.push(this.#end);
    this.#deps.onSourceEnd();
    this.#pump();
  }

  #schedule(bytes: number): Pick<Item, "receivedAtMs" | "dueMs" | "held"> {
    const { latencyMs, jitterMs, bytesPerSecond } = this.#disturbance;
    const receivedAtMs = this.#deps.clock.monotonicMs();
    const arrivesMs = Math.max(this.#lastDueMs, receivedAtMs + latencyMs + jitterMs * this.#deps.random());
    const dueMs = arrivesMs + (bytes * 1000) / bytesPerSecond;
    this.#lastDueMs = dueMs;
    return { receivedAtMs, dueMs, held: !isClear(this.#disturbance) };
  }

  #pump(): void {
    this.#cancel();
    for (let item = this.#queue[0]; item !== undefined; item = this.#queue[0]) {
      if (this.#sinkFull || this.#disturbance.blackHole) return;
      const waitMs = item.dueMs - this.#deps.clock.monotonicMs();
      if (waitMs > 0) {
        this.#cancel = this.#deps.clock.after(waitMs, () => this.#pump());
        return;
      }
      this.#queue.shift();
      this.#deliver(item);
    }
  }

  #deliver(item: Item): void {
    if ("last" in item) {
      if (item.last === "end") this.#sink.end();
      else this.#sink.resetAndDestroy();
      return;
    }
    this.#bytes -= item.bytes.length;
    if (this.#bytes < LOW_WATER_BYTES) this.#source.resume();
    this.#sinkFull = !this.#sink.write(item.bytes);
  }

  #discard(): void {
    this.#sinkGone = true;
    this.#cancel();
    const lostSinceMs = this.heldSinceMs;
    this.#queue = [];
    this.#bytes = 0;
    if (lostSinceMs !== undefined) this.#deps.onLost(lostSinceMs);
    // Its end must be seen; what it says until then has no reader.
    this.#source.resume();
  }
}
