import type { Clock } from "../../shared/clock.ts";
import { fullJitter, jittered, type Random } from "../../shared/random.ts";
import { describeEnd, verdictOf, type SocketEnd, type Verdict } from "./close-codes.ts";

export interface RetrySettings {
  readonly reconnectBaseMs: number;
  readonly reconnectCapMs: number;
  readonly connectGiveUpMs: number;
  readonly parkBaseMs: number;
  readonly fatalParkMs: number;
  readonly maxParkMs: number;
}

/** What follows the end of a socket. `forMs` and `afterMs` are jittered already. */
export type NextStep =
  | { readonly kind: "dial"; readonly verdict: Verdict; readonly afterMs: number }
  | { readonly kind: "park"; readonly verdict: Verdict; readonly forMs: number; readonly error: string };

/** A socket that lived for so long was no accident: the back-off starts from the beginning. */
const STABLE_MS = 5000;

/** How patient one connection still is with its upstream: when it dials again, and when it gives up its lease instead. */
export class Retries {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #settings: RetrySettings;
  #attempt = 0;
  /** Since the first dial without a socket that lived: waiting for a turn says nothing of the upstream. */
  #troubledSinceMs: number | undefined;

  constructor(clock: Clock, random: Random, settings: RetrySettings) {
    this.#clock = clock;
    this.#random = random;
    this.#settings = settings;
  }

  /** A dial begins. */
  dialling(): void {
    this.#troubledSinceMs ??= this.#clock.monotonicMs();
  }

  /**
   * @param livedMs how long the socket was open; 0 for a dial that failed
   * @param wanted we closed it ourselves, to dial anew
   * @param failureCount how often the connection was parked since it was last healthy
   */
  after(end: SocketEnd, livedMs: number, wanted: boolean, failureCount: number): NextStep {
    const verdict = wanted ? "again" : verdictOf(end);
    if (verdict === "park") return { kind: "park", verdict, forMs: this.fatalParkMs(), error: describeEnd(end) };
    const nowMs = this.#clock.monotonicMs();
    if (wanted || livedMs >= STABLE_MS) {
      this.#attempt = 0;
      this.#troubledSinceMs = undefined;
    } else {
      this.#attempt++;
    }
    const { connectGiveUpMs, maxParkMs } = this.#settings;
    if (nowMs - (this.#troubledSinceMs ?? nowMs) > connectGiveUpMs) {
      const error = `not connected for ${connectGiveUpMs} ms: ${describeEnd(end)}`;
      return { kind: "park", verdict, forMs: this.#unreachableParkMs(failureCount), error };
    }
    const afterMs = this.#backOffMs(verdict, end);
    if (afterMs > connectGiveUpMs) {
      // No lease stands for nothing, and a timer takes no more than 2^31 ms.
      const error = `not before ${Math.round(afterMs)} ms: ${describeEnd(end)}`;
      return { kind: "park", verdict, forMs: Math.min(afterMs, maxParkMs), error };
    }
    return { kind: "dial", verdict, afterMs };
  }

  /** For what no retry mends: people must look. */
  fatalParkMs(): number {
    const { fatalParkMs, maxParkMs } = this.#settings;
    return Math.min(maxParkMs, jittered(fatalParkMs, 0.1, this.#random));
  }

  #unreachableParkMs(failureCount: number): number {
    const { parkBaseMs, maxParkMs } = this.#settings;
    const fullMs = Math.min(maxParkMs, parkBaseMs * 2 ** Math.min(failureCount, 20));
    return jittered(fullMs * 0.75, 1 / 3, this.#random);
  }

  #backOffMs(verdict: Exclude<Verdict, "park">, end: SocketEnd): number {
    const { reconnectBaseMs, reconnectCapMs } = this.#settings;
    // A routine end of a socket that lived; a herd of them is spread by the dial gate.
    if (verdict === "again" && this.#attempt === 0) return 0;
    const delayMs = fullJitter(reconnectBaseMs, reconnectCapMs, this.#attempt, this.#random);
    return verdict === "busy" ? Math.max(end.retryAfterMs ?? 0, reconnectCapMs / 2 + delayMs) : delayMs;
  }
}
