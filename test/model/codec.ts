import type { Bounds } from "./bounds.ts";
import { Canon } from "./canonical.ts";
import {
  FREE,
  NOBODY,
  type Answer,
  type Hold,
  type Operation,
  type Request,
  type State,
  type Worker,
} from "./state.ts";

const KINDS = ["acquire", "renew", "release", "park"] as const;
const ANSWERS = ["held", "older-life", "refused"] as const;
const HOLDS = ["acting", "releasing", "parking"] as const;

/** Times are written around this, so that they stay within a byte. */
const ZERO = 128;
const FREE_CODE = 1;
const NONE_CODE = 2;
/** Read as a time beyond all others. */
const SPENT_CODE = 255;
const REQUEST_BYTES = 6;
const MAX_BYTES = 256;

/** Writes states as short strings that are equal where the states are, and reads them again. */
export class Codec {
  readonly #bounds: Bounds;
  readonly #canon: Canon;
  readonly #bytes = Buffer.alloc(MAX_BYTES);
  #at = 0;
  #mirrored = false;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
    this.#canon = new Canon(bounds);
  }

  /** Where the workers' clocks agree, they may change places: of both ways to write a state, the lesser is its key. */
  encode(state: State): string {
    this.#canon.of(state);
    const key = this.#write(state, false);
    if (this.#bounds.aheadTicks !== 0) return key;
    const mirrored = this.#write(state, true);
    return mirrored < key ? mirrored : key;
  }

  /** The state in its canonical form, with each worker in its own place. */
  canonical(state: State): State {
    this.#canon.of(state);
    return this.decode(this.#write(state, false));
  }

  decode(key: string): State {
    return new Reader(key).state();
  }

  #write({ item, workers: [first, second], late, topEpoch }: State, mirrored: boolean): string {
    this.#at = 0;
    this.#mirrored = mirrored;
    this.#put(this.#epoch(topEpoch));
    if (item === undefined) this.#put(0);
    else {
      this.#put(item.started ? 2 : 1);
      this.#put(this.#name(item.owner));
      this.#put(this.#time(item.expires));
      this.#put(this.#epoch(item.epoch));
      this.#put(this.#seq(item.seq));
    }
    this.#worker(mirrored ? second : first);
    this.#worker(mirrored ? first : second);
    const lateFrom = this.#at;
    for (const request of late) this.#request(request);
    if (late.length < 2) return this.#text(0, this.#at);
    const parts: string[] = [];
    for (let at = lateFrom; at < this.#at; at += REQUEST_BYTES) {
      parts.push(this.#text(at, at + REQUEST_BYTES));
    }
    return this.#text(0, lateFrom) + parts.sort().join("");
  }

  #worker({ op, hold }: Worker): void {
    this.#operation(op, hold);
    this.#hold(hold);
  }

  #operation(op: Operation | undefined, hold: Hold | undefined): void {
    if (op === undefined) {
      this.#put(0);
      return;
    }
    const { request, answer } = op;
    this.#put(op.takeOver ? 2 : 1);
    // Read for the deadline alone; and one that would have passed has passed.
    const { leaseTicks, marginTicks } = this.#bounds;
    const ends = hold !== undefined && hold.state !== "acting";
    const counts = !ends && !this.#canon.isSpent(request);
    this.#put(ZERO + (counts ? Math.max(op.sentAt, marginTicks - leaseTicks - 1) : 0));
    this.#request(request);
    this.#answer(answer);
  }

  #request(request: Request): void {
    this.#put(KINDS.indexOf(request.kind));
    this.#put(this.#name(request.owner));
    this.#put(this.#epoch(request.epoch));
    this.#put(this.#time(request.takeable));
    this.#put(this.#canon.isSpent(request) ? SPENT_CODE : this.#time(request.expires));
    this.#put(this.#seq(request.seq));
  }

  #answer(answer: Answer | undefined): void {
    if (answer === undefined) {
      this.#put(0);
      return;
    }
    this.#put(1 + ANSWERS.indexOf(answer.kind));
    this.#put(this.#epoch(answer.epoch));
    this.#put(this.#time(answer.expires));
    this.#put(this.#seq(answer.seq));
    this.#put(answer.started ? 1 : 0);
  }

  #hold(hold: Hold | undefined): void {
    if (hold === undefined) {
      this.#put(0);
      return;
    }
    const acting = hold.state === "acting";
    // Of a holding that ends, the deadline is read by its last checkpoint alone.
    const claims = acting || (this.#bounds.checkpoints && !hold.fenced);
    this.#put(1 + HOLDS.indexOf(hold.state));
    this.#put(this.#epoch(hold.epoch));
    this.#put(ZERO + (claims ? hold.deadline : -1));
    this.#put(acting ? hold.sent : 0);
    this.#put(this.#seq(hold.seq));
    this.#put(hold.parkUntil === undefined ? NONE_CODE : this.#time(hold.parkUntil));
    this.#put(hold.fenced && this.#bounds.checkpoints ? 1 : 0);
  }

  #text(from: number, to: number): string {
    return this.#bytes.toString("latin1", from, to);
  }

  #put(code: number): void {
    if (code < 0 || code > 255) throw new Error(`${code} does not fit into a byte`);
    this.#bytes[this.#at++] = code;
  }

  #epoch(epoch: number): number {
    return this.#canon.epoch(epoch);
  }

  #seq(seq: number): number {
    return this.#canon.seq(seq);
  }

  #time(time: number): number {
    return time === FREE ? FREE_CODE : ZERO + this.#canon.time(time);
  }

  #name(owner: number): number {
    const name = this.#mirrored && (owner === 0 || owner === 1) ? 1 - owner : this.#canon.name(owner);
    return name - NOBODY;
  }
}

class Reader {
  readonly #key: string;
  #at = 0;

  constructor(key: string) {
    this.#key = key;
  }

  state(): State {
    const topEpoch = this.#next();
    const desired = this.#next();
    const item =
      desired === 0
        ? undefined
        : {
            started: desired === 2,
            owner: this.#name(),
            expires: this.#time(),
            epoch: this.#next(),
            seq: this.#next(),
          };
    const workers = [this.#worker(), this.#worker()] as const;
    const late: Request[] = [];
    while (this.#at < this.#key.length) late.push(this.#request());
    return { item, workers, late, topEpoch };
  }

  #worker(): Worker {
    return { op: this.#operation(), hold: this.#hold() };
  }

  #operation(): Operation | undefined {
    const how = this.#next();
    if (how === 0) return undefined;
    return {
      takeOver: how === 2,
      sentAt: this.#next() - ZERO,
      request: this.#request(),
      answer: this.#answer(),
    };
  }

  #request(): Request {
    return {
      kind: oneOf(KINDS, this.#next()),
      owner: this.#name(),
      epoch: this.#next(),
      takeable: this.#time(),
      expires: this.#time(),
      seq: this.#next(),
    };
  }

  #answer(): Answer | undefined {
    const kind = this.#next();
    if (kind === 0) return undefined;
    return {
      kind: oneOf(ANSWERS, kind - 1),
      epoch: this.#next(),
      expires: this.#time(),
      seq: this.#next(),
      started: this.#next() === 1,
    };
  }

  #hold(): Hold | undefined {
    const state = this.#next();
    if (state === 0) return undefined;
    return {
      state: oneOf(HOLDS, state - 1),
      epoch: this.#next(),
      deadline: this.#next() - ZERO,
      sent: this.#next(),
      seq: this.#next(),
      parkUntil: this.#parkUntil(),
      fenced: this.#next() === 1,
    };
  }

  #parkUntil(): number | undefined {
    const code = this.#next();
    return code === NONE_CODE ? undefined : code - ZERO;
  }

  #name(): number {
    return this.#next() + NOBODY;
  }

  #time(): number {
    const code = this.#next();
    return code === FREE_CODE ? FREE : code - ZERO;
  }

  #next(): number {
    return this.#key.charCodeAt(this.#at++);
  }
}

function oneOf<T>(values: readonly T[], at: number): T {
  const value = values[at];
  if (value === undefined) throw new Error(`no value has the code ${at}`);
  return value;
}
