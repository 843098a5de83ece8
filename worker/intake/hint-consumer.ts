import { sleep, type Clock } from "../../shared/clock.ts";
import { parseHint } from "../../shared/hints/hint.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import { fullJitter, type Random } from "../../shared/random.ts";
import type { Connections } from "../connections.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Acquirer } from "./acquirer.ts";
import { MAX_BATCH, type HintQueue, type ReceivedHint } from "./hint-queue.ts";
import type { TokenBucket } from "../token-bucket.ts";

export interface HintConsumerDeps {
  readonly queue: HintQueue;
  readonly acquirer: Acquirer;
  readonly connections: Connections;
  /** Shared with the worker's own orphan query: one limit on acquires, whoever asks for them. */
  readonly tokens: TokenBucket;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** A hint of the sweep came: sweep and queue are alive. */
  readonly onSweepHint: () => void;
}

/** Bounds of the pause after a failed poll. */
const ERROR_BASE_MS = 200;
const ERROR_CAP_MS = 5000;

/**
 * One loop: ask for as many hints as there are free slots and tokens, act on them, ask again. At capacity it does not
 * ask, so the queue's depth grows and the service scales out.
 */
export class HintConsumer {
  readonly #deps: HintConsumerDeps;
  readonly #abort = new AbortController();
  readonly #handling = new Set<Promise<void>>();
  #stopping = false;
  #wake: (() => void) | undefined;
  #loop: Promise<void> | undefined;
  #failures = 0;

  constructor(deps: HintConsumerDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#loop = this.#run();
  }

  /**
   * No new poll from now on. The open one may return, and its hints are given back at once; hints being handled are
   * finished. Resolves when nothing of this is under way, or at the latest when {@link abandon} is called.
   */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#wake?.();
    await Promise.allSettled(this.#handling);
    await this.#loop;
  }

  /** Hangs up on the open poll; hints it was about to bring reappear after their visibility timeout. */
  abandon(): void {
    this.#stopping = true;
    this.#abort.abort();
    this.#wake?.();
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      const places = this.#places();
      if (places === 0) {
        await this.#waitForPlace();
        continue;
      }
      // Reserved while the poll is open, so that nobody else spends them.
      this.#deps.tokens.take(places);
      const hints = await this.#receive(places);
      this.#deps.tokens.giveBack(places - hints.length);
      if (hints.length === 0) continue;
      if (this.#isStopping()) {
        await this.#quietly(this.#deps.queue.giveBack(hints), "hints could not be given back");
        return;
      }
      const handling = this.#handle(hints).finally(() => this.#handling.delete(handling));
      this.#handling.add(handling);
    }
  }

  /** Read through a call: it changes while the poll is open. */
  #isStopping(): boolean {
    return this.#stopping;
  }

  #places(): number {
    return Math.max(0, Math.min(MAX_BATCH, this.#deps.connections.freeSlots(), this.#deps.tokens.available()));
  }

  async #waitForPlace(): Promise<void> {
    const { clock, connections, tokens } = this.#deps;
    const wait = new AbortController();
    const wake = (): void => wait.abort();
    this.#wake = wake;
    const off = connections.onFreed(wake);
    // Without a free slot only onFreed wakes; without a token, time does.
    await sleep(clock, connections.freeSlots() > 0 ? Math.max(10, tokens.waitMs()) : 1000, wait.signal);
    off();
    this.#wake = undefined;
  }

  async #receive(places: number): Promise<ReceivedHint[]> {
    const { clock, logger, queue, random } = this.#deps;
    try {
      const hints = await queue.receive(places, this.#abort.signal);
      this.#failures = 0;
      return hints;
    } catch (error) {
      if (this.#isStopping()) return [];
      const delayMs = ERROR_BASE_MS + fullJitter(ERROR_BASE_MS, ERROR_CAP_MS, this.#failures++, random);
      logger.warn({ ...errorFields(error), retry_ms: Math.round(delayMs) }, "poll for hints failed");
      const wait = new AbortController();
      this.#wake = () => wait.abort();
      await sleep(clock, delayMs, wait.signal);
      this.#wake = undefined;
      return [];
    }
  }

  async #handle(received: readonly ReceivedHint[]): Promise<void> {
    const done: ReceivedHint[] = [];
    await Promise.all(
      received.map(async (hint) => {
        if (await this.#handleOne(hint)) done.push(hint);
      }),
    );
    // A delete that fails is harmless: the hint comes again and meets our own lease.
    await this.#quietly(this.#deps.queue.remove(done), "hints could not be deleted");
  }

  /** True when the hint is done with. Nothing a hint says may end the loop. */
  async #handleOne(received: ReceivedHint): Promise<boolean> {
    const { acquirer, logger, metrics, queue, tokens } = this.#deps;
    try {
      const hint = parseHint(received.body);
      if ("problem" in hint) {
        metrics.count("MalformedHints");
        logger.warn({ problem: hint.problem }, "malformed hint moved to the dead-letter queue");
        // First there, then gone here: killed in between, it is there twice, never lost.
        await queue.sendToDlq(received.body ?? "(empty)");
        // Nothing was acquired. Kept until now, the token bounds how many of them are under way.
        tokens.giveBack(1);
        return true;
      }
      if (hint.reason === "orphaned") this.#deps.onSweepHint();
      return (await acquirer.tryAcquire(hint.connectionId, hint.freeSinceMs ?? hint.hintedAtMs)) !== "again";
    } catch (error) {
      logger.error(errorFields(error), "a hint could not be handled; it comes again");
      return false;
    }
  }

  async #quietly(work: Promise<void>, message: string): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#deps.logger.warn(errorFields(error), message);
    }
  }
}
