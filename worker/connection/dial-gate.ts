import type { Cancel, Clock } from "../../shared/clock.ts";
import { TokenBucket } from "../token-bucket.ts";

/**
 * Who may dial now: at most so many handshakes at once and so many starts per second, first come, first served. After an
 * outage everything dials at the same time; an upstream must never see more than this.
 */
export class DialGate {
  readonly #clock: Clock;
  readonly #maxConcurrent: number;
  readonly #bucket: TokenBucket;
  readonly #waiting = new Set<() => void>();
  #dialling = 0;
  #timer: Cancel | undefined;

  constructor(clock: Clock, maxConcurrent: number, perSecond: number) {
    this.#clock = clock;
    this.#maxConcurrent = maxConcurrent;
    this.#bucket = new TokenBucket(clock, perSecond, Math.max(1, Math.ceil(perSecond / 4)));
  }

  /** Calls `go` when it is this one's turn; whoever was let in must call {@link leave}. The result gives the place up. */
  enter(go: () => void): Cancel {
    this.#waiting.add(go);
    this.#admit();
    return () => this.#waiting.delete(go);
  }

  leave(): void {
    this.#dialling--;
    this.#admit();
  }

  #admit(): void {
    for (const go of this.#waiting) {
      if (this.#dialling >= this.#maxConcurrent) return;
      if (this.#bucket.available() < 1) {
        this.#timer ??= this.#clock.after(Math.max(1, this.#bucket.waitMs()), () => {
          this.#timer = undefined;
          this.#admit();
        });
        return;
      }
      this.#bucket.take(1);
      this.#dialling++;
      this.#waiting.delete(go);
      go();
    }
  }
}
