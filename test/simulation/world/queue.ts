import type { CallOptions } from "../../../shared/lease/index.ts";
import type { HintQueue as ControlQueue } from "../../../functions/core/hint-queue.ts";
import type { HintQueue as WorkerQueue, ReceivedHint } from "../../../worker/intake/hint-queue.ts";
import type { SimProcess } from "../engine/process.ts";
import type { Scheduler } from "../engine/scheduler.ts";
import type { Seeded } from "../engine/seeded.ts";
import { abortError } from "../../support/fake-dynamodb/errors.ts";
import type { Weather } from "./weather.ts";

interface Message {
  readonly body: string;
  readonly sentAtMs: number;
  visibleAtMs: number;
  handle: string;
}

export interface SimQueueDeps {
  readonly scheduler: Scheduler;
  readonly seeded: Seeded;
  readonly weather: Weather;
  readonly settings: { readonly hintVisibilityMs: number; readonly longPollMs: number };
}

/** MessageRetentionPeriod of the hint queue. */
const RETENTION_MS = 60_000;
const LATENCY_MS: readonly [number, number] = [2, 40];

/**
 * SQS: at least once, in no particular order. In bad weather it also loses what it accepted, which the real one does not;
 * the fleet must not need it.
 */
export class SimQueue {
  readonly #deps: SimQueueDeps;
  #messages: Message[] = [];
  #handles = 0;
  /** Long polls that wait for a message to become visible. */
  readonly #waiting = new Set<() => void>();

  constructor(deps: SimQueueDeps) {
    this.#deps = deps;
  }

  forWorker(process: SimProcess): WorkerQueue {
    return {
      receive: (max, signal) => this.#receive(process, max, signal),
      remove: (hints) => this.#call(process, () => this.#delete(hints)),
      giveBack: (hints) => this.#call(process, () => this.#showNow(hints)),
      sendToDlq: () => this.#call(process, () => undefined),
    };
  }

  forFunctions(process: SimProcess): ControlQueue {
    return {
      depth: (options) => this.#call(process, () => this.#live().length, options?.signal),
      sendBatch: (bodies: readonly string[], options?: CallOptions) =>
        this.#call(
          process,
          () => {
            const { failing } = this.#deps.weather.queue;
            const refused = bodies.flatMap((_, index) => (this.#deps.seeded.chance(failing / 2) ? [index] : []));
            for (const [index, body] of bodies.entries()) if (!refused.includes(index)) this.#accept(body);
            return refused;
          },
          options?.signal,
        ),
    };
  }

  /** A body that nobody of the fleet sent. */
  put(body: string): void {
    this.#accept(body);
  }

  #accept(body: string): void {
    const { seeded, scheduler } = this.#deps;
    const { lost, duplicated, delayed, delayMs } = this.#deps.weather.queue;
    if (seeded.chance(lost)) return;
    for (let copies = seeded.chance(duplicated) ? seeded.int(2, 4) : 1; copies > 0; copies--) {
      const lateMs = seeded.chance(delayed) ? seeded.between(...delayMs) : 0;
      const message = { body, sentAtMs: scheduler.nowMs, visibleAtMs: 0, handle: "" };
      this.#messages.push(message);
      this.#showAt(message, scheduler.nowMs + lateMs);
    }
  }

  #showAt(message: Message, atMs: number): void {
    message.visibleAtMs = atMs;
    this.#deps.scheduler.at(atMs, () => {
      const waiting = [...this.#waiting];
      this.#waiting.clear();
      for (const look of waiting) look();
    });
  }

  #live(): Message[] {
    const oldestMs = this.#deps.scheduler.nowMs - RETENTION_MS;
    this.#messages = this.#messages.filter((message) => message.sentAtMs >= oldestMs);
    return this.#messages;
  }

  #take(max: number): ReceivedHint[] {
    const { scheduler, seeded, settings } = this.#deps;
    const visible = this.#live().filter((message) => message.visibleAtMs <= scheduler.nowMs);
    const taken: ReceivedHint[] = [];
    while (taken.length < max && visible.length > 0) {
      const [message] = visible.splice(seeded.int(0, visible.length - 1), 1);
      if (message === undefined) break;
      message.handle = String(++this.#handles);
      this.#showAt(message, scheduler.nowMs + settings.hintVisibilityMs);
      taken.push({ body: message.body, receiptHandle: message.handle });
    }
    return taken;
  }

  #delete(hints: readonly ReceivedHint[]): void {
    const handles = new Set(hints.map((hint) => hint.receiptHandle));
    this.#messages = this.#messages.filter((message) => !handles.has(message.handle));
  }

  #showNow(hints: readonly ReceivedHint[]): void {
    const handles = new Set(hints.map((hint) => hint.receiptHandle));
    for (const message of this.#messages) {
      if (handles.has(message.handle)) this.#showAt(message, this.#deps.scheduler.nowMs);
    }
  }

  #receive(process: SimProcess, max: number, signal: AbortSignal): Promise<ReceivedHint[]> {
    const { scheduler, seeded, settings } = this.#deps;
    return new Promise((resolve, reject) => {
      let done = false;
      const settle = (how: () => void): void => {
        if (done) return;
        done = true;
        cancelTimeout();
        signal.removeEventListener("abort", onAbort);
        how();
      };
      const onAbort = (): void => settle(() => reject(abortError(signal)));
      const cancelTimeout = process.clock.after(settings.longPollMs + 5000, () =>
        settle(() => reject(new Error("the poll timed out"))),
      );
      if (signal.aborted) {
        onAbort();
        return;
      }
      signal.addEventListener("abort", onAbort);
      const answer = (hints: ReceivedHint[]): void => {
        scheduler.in(seeded.skewed(...LATENCY_MS), () => process.deliver(() => settle(() => resolve(hints))));
      };
      process.depart(() => {
        const untilMs = scheduler.nowMs + settings.longPollMs;
        const look = (): void => {
          const { down, failing } = this.#deps.weather.queue;
          const over = scheduler.nowMs >= untilMs;
          this.#waiting.delete(look);
          if (down) return;
          if (seeded.chance(failing / 20)) {
            scheduler.in(5, () => process.deliver(() => settle(() => reject(new Error("the queue is not well")))));
            return;
          }
          // A poll whose process died still takes hints with it; they reappear.
          const hints = this.#take(max);
          if (hints.length > 0 || over) {
            cancelEnd();
            answer(hints);
          } else this.#waiting.add(look);
        };
        const cancelEnd = scheduler.at(untilMs, look);
        scheduler.in(seeded.skewed(...LATENCY_MS), look);
      });
    });
  }

  #call<T>(process: SimProcess, effect: () => T, signal?: AbortSignal): Promise<T> {
    const { scheduler, seeded, weather } = this.#deps;
    return new Promise((resolve, reject) => {
      const fail = (): void => {
        scheduler.in(5000, () => process.deliver(() => reject(new Error("the queue does not answer"))));
      };
      signal?.addEventListener("abort", () => reject(abortError(signal)), { once: true });
      process.depart(() => {
        if (weather.queue.down || seeded.chance(weather.queue.failing)) {
          fail();
          return;
        }
        scheduler.in(seeded.skewed(...LATENCY_MS), () => {
          const result = effect();
          if (seeded.chance(weather.queue.failing)) fail();
          else scheduler.in(seeded.skewed(...LATENCY_MS), () => process.deliver(() => resolve(result)));
        });
      });
    });
  }
}
