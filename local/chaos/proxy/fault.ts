import { hash32 } from "../../upstream/hash.ts";
import type { NetworkEffect } from "./effect.ts";

/** A fault of the network while it is on, and what came of it. */
export class Fault {
  readonly effect: NetworkEffect;
  /** Connections that it was on. */
  connections = 0;
  /** Bytes that came while it was on, both ways. */
  bytes = 0;
  readonly #share: number;
  readonly #salt: number;

  /**
   * @param share of the connection ids that it hits, from 0 to 1; which ones follows from the salt. 1 hits all, and those
   *   connections too of which no id is known.
   */
  constructor(effect: NetworkEffect, share = 1, salt = 0) {
    this.effect = effect;
    this.#share = share;
    this.#salt = salt;
  }

  hits(connectionId: string | undefined): boolean {
    if (this.#share >= 1) return true;
    return connectionId !== undefined && hash32(this.#salt, connectionId) / 2 ** 32 < this.#share;
  }
}
