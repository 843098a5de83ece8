import type { Cancel, Clock } from "../../shared/clock.ts";

/** A socket that receives a message piece by piece. */
export interface Receiving {
  /** Stop reading until {@link letGo}. */
  hold(): void;
  letGo(): void;
  /** It held up the others for too long. */
  giveUp(): void;
}

export interface UnfinishedSettings {
  /** Bytes of messages whose end has not come, of all sockets together. */
  readonly maxBytes: number;
  /** How long one message may hold up the others. */
  readonly patienceMs: number;
}

/** Less than this of one socket is not counted: about what one read of the network brings. */
export const UNCOUNTED_BYTES = 65_536;

/**
 * Bounds what unfinished messages of all sockets take up. A message has to be whole before it can be stored, so slowing
 * the senders down is not enough: were all of them held, none would ever finish. Beyond the bound only the one that
 * began first goes on reading. It ends, or is given up, and then it is the next one's turn; so memory stays within the
 * bound, one largest message, and one read of the network for each socket.
 */
export class UnfinishedMessages {
  readonly #clock: Clock;
  readonly #settings: UnfinishedSettings;
  /** In the order in which they began. */
  readonly #bytes = new Map<Receiving, number>();
  readonly #held = new Set<Receiving>();
  #total = 0;
  #first: Receiving | undefined;
  #cancelPatience: Cancel | undefined;

  constructor(clock: Clock, settings: UnfinishedSettings) {
    this.#clock = clock;
    this.#settings = settings;
  }

  get totalBytes(): number {
    return this.#total;
  }

  /** So many bytes of an unfinished message are in memory for this socket; 0 when it ended. */
  note(socket: Receiving, bytes: number): void {
    this.#total -= this.#bytes.get(socket) ?? 0;
    if (bytes <= UNCOUNTED_BYTES) {
      this.#bytes.delete(socket);
      this.#release(socket);
    } else {
      this.#bytes.set(socket, bytes);
      this.#total += bytes;
    }
    if (this.#total <= this.#settings.maxBytes) this.#endOfShortage();
    else this.#shortage(socket);
  }

  #shortage(socket: Receiving): void {
    const first = this.#oldest();
    if (first !== this.#first) {
      this.#cancelPatience?.();
      this.#first = first;
      this.#cancelPatience = this.#clock.after(this.#settings.patienceMs, () => first?.giveUp());
    }
    if (first !== undefined) this.#release(first);
    if (socket === first || !this.#bytes.has(socket) || this.#held.has(socket)) return;
    this.#held.add(socket);
    socket.hold();
  }

  #endOfShortage(): void {
    this.#cancelPatience?.();
    this.#cancelPatience = undefined;
    this.#first = undefined;
    for (const socket of this.#held) this.#release(socket);
  }

  #release(socket: Receiving): void {
    if (this.#held.delete(socket)) socket.letGo();
  }

  #oldest(): Receiving | undefined {
    for (const socket of this.#bytes.keys()) return socket;
    return undefined;
  }
}
