import type { MessageLane } from "./lane.ts";
import { LANE_SHARE, LOW_WATER } from "./limits.ts";

export interface Bounds {
  readonly maxItems: number;
  readonly maxBytes: number;
}

/**
 * Keeps what is received and not yet stored within bounds, by pausing sockets: nothing is refused or dropped.
 *
 * A lane above its share of the bounds is paused by itself. Above the whole bounds every lane that pushes is paused. A
 * lane is read again when the whole is not above its bounds and the lane itself is down at half its share; after having
 * been above its bounds, the whole must first fall to half of them. What sockets had already read still comes in, so the
 * bounds are exceeded by at most one read per socket.
 */
export class Pressure {
  readonly #bounds: Bounds;
  readonly #paused = new Set<MessageLane>();
  #over = false;
  items = 0;
  bytes = 0;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  added(lane: MessageLane, bytes: number): void {
    this.items++;
    this.bytes += bytes;
    if (!within(this, this.#bounds, 1)) this.#over = true;
    if (this.#over || !within(lane.load, this.#bounds, LANE_SHARE)) this.#pause(lane);
  }

  /** To be called after the lane's own load fell. */
  removed(lane: MessageLane, bytes: number): void {
    this.items--;
    this.bytes -= bytes;
    if (this.#over) {
      if (!within(this, this.#bounds, LOW_WATER)) return;
      this.#over = false;
      // A copy: a lane that is read again may push at once and be paused again.
      for (const paused of [...this.#paused]) this.#resume(paused);
    } else {
      this.#resume(lane);
    }
  }

  #pause(lane: MessageLane): void {
    if (this.#paused.has(lane)) return;
    this.#paused.add(lane);
    lane.announcePressure(true);
  }

  #resume(lane: MessageLane): void {
    if (this.#over || !within(lane.load, this.#bounds, LANE_SHARE * LOW_WATER)) return;
    if (this.#paused.delete(lane)) lane.announcePressure(false);
  }
}

function within(load: { readonly items: number; readonly bytes: number }, bounds: Bounds, share: number): boolean {
  return load.items <= bounds.maxItems * share && load.bytes <= bounds.maxBytes * share;
}
