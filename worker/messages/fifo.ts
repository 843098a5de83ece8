const COMPACT_FROM = 1024;

/** A queue over an array with a moving head: every operation is O(1) amortised, which `Array.shift` is not. */
export class Fifo<T extends object> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    // The slot is cleared so that a taken row is not kept in memory until the next compaction.
    this.#items[this.#head] = undefined;
    this.#head++;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head >= COMPACT_FROM && this.#head * 2 >= this.#items.length) {
      this.#items.splice(0, this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Takes out what matches, keeping the order of the rest. O(n): for rare events only. */
  remove(matches: (item: T) => boolean): T[] {
    const removed: T[] = [];
    const kept: T[] = [];
    for (const item of this.#items) {
      if (item !== undefined) (matches(item) ? removed : kept).push(item);
    }
    this.#items = kept;
    this.#head = 0;
    return removed;
  }
}
