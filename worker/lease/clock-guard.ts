import type { Clock } from "../../shared/clock.ts";
import type { DateObservation } from "../../shared/aws/date-header.ts";

/** Our clock minus the reference, as an interval that surely contains it; ms. */
export interface OffsetInterval {
  readonly lowMs: number;
  readonly highMs: number;
}

export interface ClockGuardSettings {
  readonly skewMs: number;
  /** Answers older than this say nothing about the clock now. */
  readonly windowMs: number;
  /** Fewer answers prove nothing: a single server may be off itself. */
  readonly minObservations: number;
}

/** Slots of the window; each keeps the tightest interval of its time, so memory does not grow with traffic. */
const SLOTS = 12;

interface Slot extends OffsetInterval {
  readonly startedAtMs: number;
  readonly count: number;
}

/**
 * Compares the anchored clock with the Date header of answers. One header has a grain of a second and an unknown delay,
 * so a single one only bounds the offset; the intersection of many bounds it tightly. Only an offset that is **proven**
 * beyond the skew counts. Contradicting answers (an empty intersection) prove nothing and start the window anew.
 */
export class ClockGuard {
  readonly #clock: Clock;
  readonly #settings: ClockGuardSettings;
  #slots: Slot[] = [];
  #errorBoundMs = 0;

  constructor(clock: Clock, settings: ClockGuardSettings) {
    this.#clock = clock;
    this.#settings = settings;
  }

  observe(date: DateObservation): void {
    // The server stamped somewhere in [dateMs, dateMs + 1000), while our clock went from sentAt to receivedAt.
    this.#add({ lowMs: date.sentAtMs - (date.dateMs + 1000), highMs: date.receivedAtMs - date.dateMs });
  }

  /** The intersection of what was seen lately; undefined while there is too little or it contradicts itself. */
  interval(): OffsetInterval | undefined {
    this.#expire();
    const count = this.#slots.reduce((sum, slot) => sum + slot.count, 0);
    if (count < this.#settings.minObservations) return undefined;
    const lowMs = Math.max(...this.#slots.map((slot) => slot.lowMs));
    const highMs = Math.min(...this.#slots.map((slot) => slot.highMs));
    if (lowMs > highMs) {
      this.reset();
      return undefined;
    }
    return { lowMs, highMs };
  }

  /** The offset nearest to zero that is possible: 0 unless it is proven to be off. */
  provenOffsetMs(): number {
    const interval = this.interval();
    if (interval === undefined) return 0;
    if (interval.lowMs > 0) return interval.lowMs;
    return interval.highMs < 0 ? interval.highMs : 0;
  }

  /** What the platform itself says of the clock: it may be off by so much. undefined: the platform does not measure. */
  reportErrorBound(errorBoundMs: number | undefined): void {
    this.#errorBoundMs = errorBoundMs ?? 0;
  }

  /** True when the clock is proven, or by the platform's measurement may be, further off than the protocol tolerates. */
  beyondSkew(): boolean {
    return Math.abs(this.provenOffsetMs()) > this.#settings.skewMs || this.#errorBoundMs > this.#settings.skewMs;
  }

  /** After anchoring anew, what was seen before says nothing. */
  reset(): void {
    this.#slots = [];
  }

  #add(seen: OffsetInterval): void {
    this.#expire();
    const nowMs = this.#clock.monotonicMs();
    const last = this.#slots.at(-1);
    if (last === undefined || nowMs - last.startedAtMs >= this.#settings.windowMs / SLOTS) {
      this.#slots.push({ ...seen, startedAtMs: nowMs, count: 1 });
      return;
    }
    this.#slots[this.#slots.length - 1] = {
      startedAtMs: last.startedAtMs,
      count: last.count + 1,
      lowMs: Math.max(last.lowMs, seen.lowMs),
      highMs: Math.min(last.highMs, seen.highMs),
    };
  }

  #expire(): void {
    const oldestMs = this.#clock.monotonicMs() - this.#settings.windowMs;
    while (this.#slots[0] !== undefined && this.#slots[0].startedAtMs < oldestMs) this.#slots.shift();
  }
}
