interface Waiter {
  readonly upTo: number;
  remaining: number;
  ok: boolean;
  readonly resolve: (ok: boolean) => void;
}

/**
 * Counts pending rows and lets callers wait until those pushed so far are settled, whatever is pushed meanwhile. Rows are
 * told apart by rising tickets; nothing is kept for a row, and a settled row costs one step per waiter.
 */
export class FlushGate {
  #pending = 0;
  #newest = 0;
  #ended = false;
  readonly #waiters = new Set<Waiter>();

  get pending(): number {
    return this.#pending;
  }

  add(ticket: number): void {
    this.#newest = ticket;
    this.#pending++;
  }

  settle(ticket: number, durable: boolean): void {
    this.#pending--;
    for (const waiter of this.#waiters) {
      if (ticket > waiter.upTo) continue;
      waiter.remaining--;
      waiter.ok &&= durable;
      if (waiter.remaining === 0) waiter.resolve(waiter.ok);
    }
  }

  /**
   * True once every row added so far is durable; false when one of them was refused, `signal` aborted, or the gate was
   * ended with rows still pending. Never rejects.
   */
  wait(signal?: AbortSignal): Promise<boolean> {
    if (this.#pending === 0) return Promise.resolve(true);
    if (this.#ended || signal?.aborted === true) return Promise.resolve(false);
    return new Promise((resolve) => {
      const finish = (ok: boolean): void => {
        this.#waiters.delete(waiter);
        signal?.removeEventListener("abort", give);
        resolve(ok);
      };
      const give = (): void => finish(false);
      const waiter: Waiter = { upTo: this.#newest, remaining: this.#pending, ok: true, resolve: finish };
      this.#waiters.add(waiter);
      signal?.addEventListener("abort", give, { once: true });
    });
  }

  /** Nothing will be settled any more. */
  end(): void {
    this.#ended = true;
    for (const waiter of this.#waiters) waiter.resolve(false);
  }
}
