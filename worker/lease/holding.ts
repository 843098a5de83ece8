import type { Deadline, Holder } from "../../shared/lease/index.ts";

/**
 * One life of ownership: from a successful acquire to its end. A restarted holding of the same connection is another
 * object, so that a late callback of an old one finds that its own holding has ended, whatever the connection does now.
 *
 * `acting` → (`fenced` | `ended`). It never acts again once it left `acting`, even if a late renewal succeeds.
 */
export class Holding implements Holder {
  readonly connectionId: string;
  readonly owner: string;
  readonly epoch: bigint;
  #deadline: Deadline;
  #expiresAtMs: number;
  #state: "acting" | "fenced" | "ended" = "acting";

  constructor(holder: Holder, deadline: Deadline, expiresAtMs: number) {
    this.connectionId = holder.connectionId;
    this.owner = holder.owner;
    this.epoch = holder.epoch;
    this.#deadline = deadline;
    this.#expiresAtMs = expiresAtMs;
  }

  /** Asked at **every** side effect: timers run late exactly when it matters. */
  mayAct(): boolean {
    return this.#state === "acting" && !this.#deadline.passed();
  }

  get state(): "acting" | "fenced" | "ended" {
    return this.#state;
  }

  get deadline(): Deadline {
    return this.#deadline;
  }

  /** The highest expiry that is known to be written, or may be. */
  get expiresAtMs(): number {
    return this.#expiresAtMs;
  }

  /** Notes an expiry **before** it is sent: the next one must be higher even if nobody ever answers. */
  sending(expiresAtMs: number): void {
    this.#expiresAtMs = Math.max(this.#expiresAtMs, expiresAtMs);
  }

  /** A renewal that started at the deadline's start was confirmed. */
  extend(deadline: Deadline): void {
    if (this.#state === "acting") this.#deadline = deadline;
  }

  fence(): void {
    if (this.#state === "acting") this.#state = "fenced";
  }

  end(): void {
    this.#state = "ended";
  }
}
