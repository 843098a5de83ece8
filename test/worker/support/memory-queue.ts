import type { Clock } from "../../../shared/clock.ts";
import { encodeHint } from "../../../shared/hints/hint.ts";
import type { HintQueue, ReceivedHint } from "../../../worker/intake/hint-queue.ts";

/** A hint queue in the test's own time: long polls, hiding, giving back. */
export class MemoryQueue implements HintQueue {
  readonly visible: ReceivedHint[] = [];
  readonly dead: string[] = [];
  openPolls = 0;
  readonly #clock: Clock;
  readonly #longPollMs: number;
  readonly #hidden = new Map<ReceivedHint, () => void>();
  readonly #waiting = new Set<() => void>();
  #handles = 0;

  constructor(clock: Clock, longPollMs: number) {
    this.#clock = clock;
    this.#longPollMs = longPollMs;
  }

  hint(...connectionIds: string[]): void {
    for (const connectionId of connectionIds) {
      const body = encodeHint({ connectionId, reason: "orphaned", hintedAtMs: this.#clock.wallMs() });
      this.#show({ body, receiptHandle: String(++this.#handles) });
    }
  }

  async receive(max: number, signal: AbortSignal): Promise<ReceivedHint[]> {
    this.openPolls++;
    if (this.visible.length === 0) await this.#arrival(signal);
    this.openPolls--;
    signal.throwIfAborted();
    const received = this.visible.splice(0, max);
    for (const one of received)
      this.#hidden.set(
        one,
        this.#clock.after(3000, () => this.#reveal(one)),
      );
    return received;
  }

  remove(hints: readonly ReceivedHint[]): Promise<void> {
    for (const one of hints) {
      this.#hidden.get(one)?.();
      this.#hidden.delete(one);
    }
    return Promise.resolve();
  }

  giveBack(hints: readonly ReceivedHint[]): Promise<void> {
    for (const one of hints) this.#reveal(one);
    return Promise.resolve();
  }

  sendToDlq(body: string): Promise<void> {
    this.dead.push(body);
    return Promise.resolve();
  }

  #show(one: ReceivedHint): void {
    this.visible.push(one);
    for (const wake of [...this.#waiting]) wake();
  }

  #reveal(one: ReceivedHint): void {
    const cancel = this.#hidden.get(one);
    if (cancel === undefined) return;
    cancel();
    this.#hidden.delete(one);
    this.#show(one);
  }

  #arrival(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        cancel();
        this.#waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      const cancel = this.#clock.after(this.#longPollMs, wake);
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}
