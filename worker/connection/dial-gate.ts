import type { Cancel, Clock } from "../../shared/clock.ts";
import { TokenBucket } from "../token-bucket.ts";

/** The share of the places that one host may fill: one that swallows handshakes must leave some to the others. */
const HOST_SHARE = 0.8;

/** Those of one host that wait, in the order they came, and how many are inside. */
interface Host {
  readonly waiting: Set<() => void>;
  dialling: number;
}

/**
 * Who may dial now: at most so many handshakes at once and so many starts per second. After an outage everything dials
 * at the same time; an upstream must never see more than this.
 *
 * The hosts take turns, and one host is served first come, first served: a thousand dials to a host that does not answer
 * cost the others a place, not their turn.
 */
export class DialGate {
  readonly #clock: Clock;
  readonly #maxConcurrent: number;
  readonly #maxOfOneHost: number;
  readonly #bucket: TokenBucket;
  /** In the order of their next turns. */
  readonly #hosts = new Map<string, Host>();
  #dialling = 0;
  #timer: Cancel | undefined;

  constructor(clock: Clock, maxConcurrent: number, perSecond: number) {
    this.#clock = clock;
    this.#maxConcurrent = maxConcurrent;
    this.#maxOfOneHost = Math.ceil(maxConcurrent * HOST_SHARE);
    this.#bucket = new TokenBucket(clock, perSecond, Math.max(1, Math.ceil(perSecond / 4)));
  }

  /**
   * Calls `go` when it is this one's turn; whoever was let in must call {@link leave} with the same host. The result
   * gives the place in the queue up.
   */
  enter(host: string, go: () => void): Cancel {
    const entry = this.#hosts.get(host) ?? { waiting: new Set(), dialling: 0 };
    this.#hosts.set(host, entry);
    entry.waiting.add(go);
    this.#admit();
    return () => {
      entry.waiting.delete(go);
      this.#forget(host);
    };
  }

  /** Hosts that dial or wait. */
  get hosts(): number {
    return this.#hosts.size;
  }

  leave(host: string): void {
    const entry = this.#hosts.get(host);
    if (entry === undefined || entry.dialling === 0) throw new Error(`nobody dials ${host}`);
    entry.dialling--;
    this.#dialling--;
    this.#forget(host);
    this.#admit();
  }

  #admit(): void {
    while (this.#dialling < this.#maxConcurrent) {
      const next = this.#next();
      if (next === undefined) return;
      if (this.#bucket.available() < 1) {
        this.#timer ??= this.#clock.after(Math.max(1, this.#bucket.waitMs()), () => {
          this.#timer = undefined;
          this.#admit();
        });
        return;
      }
      const { name, host, go } = next;
      this.#bucket.take(1);
      this.#dialling++;
      host.dialling++;
      host.waiting.delete(go);
      // Its next turn comes after everybody else's.
      this.#hosts.delete(name);
      this.#hosts.set(name, host);
      go();
    }
  }

  #next(): { name: string; host: Host; go: () => void } | undefined {
    for (const [name, host] of this.#hosts) {
      if (host.dialling >= this.#maxOfOneHost) continue;
      for (const go of host.waiting) return { name, host, go };
    }
    return undefined;
  }

  /** Hosts come and go for as long as the worker lives. */
  #forget(host: string): void {
    const entry = this.#hosts.get(host);
    if (entry?.waiting.size === 0 && entry.dialling === 0) this.#hosts.delete(host);
  }
}
