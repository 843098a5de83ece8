import type { Random } from "../../../shared/random.ts";

/** A repeatable source of chance: the same seed and label draw the same numbers, whatever other sources draw. */
export class Seeded {
  readonly #seed: string;
  readonly #state: Uint32Array;

  constructor(seed: string) {
    this.#seed = seed;
    this.#state = new Uint32Array(4);
    for (let word = 0; word < 4; word++) this.#state[word] = hash(`${seed}/${word}`) | 1;
    for (let turn = 0; turn < 12; turn++) this.#next();
  }

  /** A source of its own for one part, so that a change in one part does not disturb the draws of another. */
  fork(label: string): Seeded {
    return new Seeded(`${this.#seed}:${label}`);
  }

  readonly random: Random = () => this.#next() / 2 ** 32;

  chance(probability: number): boolean {
    return this.random() < probability;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.random();
  }

  /** A whole number from `low` to `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.random() * (high - low + 1));
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.int(0, items.length - 1)];
    if (item === undefined) throw new Error("pick: nothing to pick from");
    return item;
  }

  /** A wait of a process without memory, cut off at four times its mean. */
  wait(meanMs: number): number {
    return Math.min(4 * meanMs, -meanMs * Math.log(1 - this.random()));
  }

  /** Mostly near `low`, now and then far towards `high`: how networks take their time. */
  skewed(low: number, high: number): number {
    return low + (high - low) * this.random() ** 4;
  }

  /** One of the keys, each as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Partial<Record<K, number>>>): K {
    const entries = Object.entries(weights) as [K, number][];
    let left = this.random() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [key, weight] of entries) {
      left -= weight;
      if (left < 0) return key;
    }
    const last = entries.findLast(([, weight]) => weight > 0);
    if (last === undefined) throw new Error("weighted: no weight is above zero");
    return last[0];
  }

  /** Xorshift over 128 bits. */
  #next(): number {
    const state = this.#state;
    let mixed = state[3] ?? 0;
    const first = state[0] ?? 0;
    state[3] = state[2] ?? 0;
    state[2] = state[1] ?? 0;
    state[1] = first;
    mixed ^= mixed << 11;
    mixed ^= mixed >>> 8;
    const next = (mixed ^ first ^ (first >>> 19)) >>> 0;
    state[0] = next;
    return next;
  }
}

function hash(text: string): number {
  let value = 0x9dc5_811c;
  for (const char of text) {
    value = Math.imul(value ^ (char.codePointAt(0) ?? 0), 0x0100_0193);
    value ^= value >>> 15;
  }
  value = Math.imul(value ^ (value >>> 16), 0x7feb_352d);
  return (value ^ (value >>> 15)) >>> 0;
}
