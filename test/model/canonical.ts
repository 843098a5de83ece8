import type { Bounds } from "./bounds.ts";
import { FIRST_DEAD_NAME, FREE, type Request, type State } from "./state.ts";

/**
 * How a state is written so that states that can only do the same are one:
 *
 * - Epochs and checkpoints become dense ranks. The protocol compares them and adds one to the highest, nothing else.
 * - Times before every cut-off that is still to come keep their order and lose their distance: whatever is computed from
 *   now on lies after them. So time needs no horizon, and late requests may be as late as they like.
 * - A request that can only be refused loses its times.
 * - Dead names are numbered in the order in which the state names them.
 *
 * One object serves all states of a search: `of` prepares it for the next one.
 */
export class Canon {
  readonly #bounds: Bounds;
  #state: State | undefined;
  /** Sets of small numbers, as bits. */
  #epochs = 0;
  #seqs = 0;
  /** Bit n: the time n + 1 before the cut-off occurs. */
  #old = 0;
  #cutOff = 0;
  #deadNames: readonly number[] = [];

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  of(state: State): void {
    const { item, workers, late, topEpoch } = state;
    this.#state = state;
    this.#epochs = bit(topEpoch);
    this.#seqs = 0;
    this.#old = 0;
    // The earliest that any step from now on compares a time with: the cut-off of a search for orphans.
    this.#cutOff = -2 * (this.#bounds.skewTicks + 1);
    for (const { op } of workers) {
      // How an acquire's refusal is understood depends on distances between its own times and the item's.
      if (op?.request.kind === "acquire" && op.answer === undefined && op.request.takeable < this.#cutOff) {
        this.#cutOff = op.request.takeable;
      }
    }
    if (item !== undefined) this.#see(item.epoch, item.seq, item.expires);
    for (const { op, hold } of workers) {
      if (op !== undefined) this.#seeRequest(op.request);
      if (op?.answer !== undefined) this.#see(op.answer.epoch, op.answer.seq, op.answer.expires);
      if (hold !== undefined) this.#see(hold.epoch, hold.seq, hold.parkUntil ?? FREE);
    }
    for (const request of late) this.#seeRequest(request);
    if (this.#bounds.deadNames > 1) this.#deadNames = deadNames(state);
  }

  /** 0 means that there is none. */
  epoch(value: number): number {
    return value === 0 ? 0 : ones(this.#epochs & upTo(value));
  }

  seq(value: number): number {
    return value === 0 ? 0 : ones(this.#seqs & upTo(value));
  }

  time(value: number): number {
    if (value >= this.#cutOff || value === FREE) return value;
    return this.#cutOff - ones(this.#old & upTo(this.#cutOff - value));
  }

  name(value: number): number {
    if (value < FIRST_DEAD_NAME || this.#bounds.deadNames < 2) return value;
    return FIRST_DEAD_NAME + this.#deadNames.indexOf(value);
  }

  /**
   * A request of a holding that the item does not name: epochs never come again, so it is refused whenever it arrives, and
   * its times do not matter. If it were not refused, that alone would break a rule.
   */
  isSpent({ kind, owner, epoch }: Request): boolean {
    if (kind === "acquire" || kind === "release" || this.#bounds.unreduced) return false;
    const item = this.#state?.item;
    return item?.owner !== owner || item.epoch !== epoch;
  }

  #seeRequest(request: Request): void {
    this.#see(request.epoch, request.seq, this.isSpent(request) ? FREE : request.expires);
    this.#see(0, 0, request.takeable);
  }

  #see(epoch: number, seq: number, time: number): void {
    this.#epochs |= bit(epoch);
    this.#seqs |= bit(seq);
    if (time < this.#cutOff && time !== FREE) this.#old |= bit(this.#cutOff - time);
  }
}

function deadNames({ item, late }: State): number[] {
  const names: number[] = [];
  if (item !== undefined && item.owner >= FIRST_DEAD_NAME) names.push(item.owner);
  const order = (a: Request, b: Request): number =>
    (a.kind < b.kind ? -1 : a.kind > b.kind ? 1 : 0) ||
    a.epoch - b.epoch ||
    a.takeable - b.takeable ||
    a.expires - b.expires ||
    a.seq - b.seq;
  for (const { owner } of [...late].sort(order)) {
    if (owner >= FIRST_DEAD_NAME && !names.includes(owner)) names.push(owner);
  }
  return names;
}

/** The set of one number from 1 to 30; the empty one for 0. */
function bit(value: number): number {
  if (value > 30) throw new Error(`${value} is more than a set holds`);
  return value === 0 ? 0 : 1 << (value - 1);
}

/** All numbers from 1 to `value`. */
function upTo(value: number): number {
  return (1 << value) - 1;
}

/** How many numbers a set holds. */
function ones(set: number): number {
  let left = set;
  let count = 0;
  for (; left !== 0; left &= left - 1) count++;
  return count;
}
