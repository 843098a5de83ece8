import { CONNECTION } from "../../../shared/connection/attributes.ts";
import type { HintQueue, ReceivedHint } from "../../../worker/intake/hint-queue.ts";
import { Fleet } from "../../simulation/world/fleet.ts";

export interface SimulatedLoad {
  readonly connections: number;
  readonly tasks: number;
  readonly environment: Readonly<Record<string, string>>;
}

/** What a worker said, with the connection it said it of. */
export interface Said {
  readonly atMs: number;
  readonly connectionId: string | undefined;
  readonly message: string;
  /** Since the request of the connection's last answered lease operation was sent, ms. */
  readonly sinceConfirmedMs: number;
}

/** A fleet in virtual time that watches its leases, its hints and its dials. */
export class WatchedFleet {
  readonly fleet: Fleet;
  readonly said: Said[] = [];
  /** Receives of each hint that was ever in the queue, by body. */
  readonly receives = new Map<string, number>();
  dead = 0;
  /** When the request of the last lease operation that was answered was sent, per connection. */
  readonly #confirmedMs = new Map<string, number>();

  constructor(seed: string, { connections, tasks, environment }: SimulatedLoad) {
    const fleet = new Fleet({ seed, environment, indexUnitsPerSecond: 1_000_000 });
    this.fleet = fleet;
    const { scheduler } = fleet;
    const logged = fleet.logged.bind(fleet);
    const answered = fleet.answered.bind(fleet);
    const forWorker = fleet.queue.forWorker.bind(fleet.queue);
    fleet.logged = (actor, level, fields, message) => {
      const { connection_id: connectionId } = fields as { connection_id?: string };
      const sinceConfirmedMs = scheduler.nowMs - (this.#confirmedMs.get(connectionId ?? "") ?? NaN);
      this.said.push({ atMs: scheduler.nowMs, connectionId, message, sinceConfirmedMs });
      logged(actor, level, fields, message);
    };
    fleet.answered = (writer, operation, input, sentAtMs) => {
      const id = (input as { Key?: Record<string, { S?: string }> }).Key?.[CONNECTION.id]?.S;
      if (operation === "UpdateItem" && writer.task !== undefined && id !== undefined)
        this.#confirmedMs.set(id, sentAtMs);
      answered(writer, operation, input, sentAtMs);
    };
    fleet.queue.forWorker = (process) => this.#watched(forWorker(process));
    for (let n = 0; n < connections; n++) {
      const connectionId = `c${n}`;
      const positioned = n % 2 === 0;
      fleet.addUpstream({ connectionId, positioned, firstSeq: 0n, inclusive: n % 4 === 0, meanIntervalMs: 2000 });
    }
    for (let n = 0; n < tasks; n++) fleet.addTask({ offsetMs: 0, rate: 1, monotonicMs: 0 });
  }

  get nowMs(): number {
    return this.fleet.scheduler.nowMs;
  }

  startAll(from = 0): void {
    for (const { connectionId } of this.fleet.upstreams.slice(from)) this.fleet.start(connectionId);
  }

  /** Lets time pass; a violation of any invariant ends it with an error. */
  async pass(ms: number): Promise<void> {
    await this.#run(ms, () => false);
  }

  /** Waits for the condition and returns how long it took, ms. */
  async until(what: string, withinMs: number, condition: () => boolean): Promise<number> {
    const fromMs = this.nowMs;
    if (!(await this.#run(withinMs, condition))) throw new Error(`not within ${withinMs} ms: ${what}`);
    return this.nowMs - fromMs;
  }

  /** Connections with an open socket at the task that the table names. */
  streaming(): number {
    const { fleet } = this;
    const owners = new Map(
      fleet.store.db
        .items(fleet.settings.connectionsTable)
        .map((item) => [item[CONNECTION.id]?.S, item[CONNECTION.owner]?.S]),
    );
    const live = fleet.sockets.filter(
      (socket) => socket.live && socket.open && owners.get(socket.connectionId) === socket.task,
    );
    return new Set(live.map(({ connectionId }) => connectionId)).size;
  }

  /** Per connection: messages that are not in the table, though the upstream can replay or somebody received them in time. */
  missing(): { readonly connectionId: string; readonly sent: number; readonly missing: number }[] {
    return this.fleet.upstreams.map(({ connectionId, positioned, sent }) => {
      const stored = new Set(this.fleet.stored.rowsOf(connectionId).values());
      const due = sent.filter(({ receipts }) => positioned || receipts.some(({ epoch }) => epoch !== undefined));
      return { connectionId, sent: due.length, missing: due.filter(({ payload }) => !stored.has(payload)).length };
    });
  }

  lines(message: RegExp, sinceMs = 0): Said[] {
    return this.said.filter((line) => line.atMs >= sinceMs && message.test(line.message));
  }

  async #run(ms: number, condition: () => boolean): Promise<boolean> {
    const { scheduler, violations, history } = this.fleet;
    let looked = -Infinity;
    const met = await scheduler.runUntil(scheduler.nowMs + ms, () => {
      if (violations.first !== undefined) return true;
      // Looking at all connections after each event would take longer than the events.
      if (scheduler.nowMs - looked < 20) return false;
      looked = scheduler.nowMs;
      return condition();
    });
    const { first } = violations;
    if (first !== undefined) {
      throw new Error(`${first.rule}: ${first.text}\n${history.lines(first.connectionId, 30).join("\n")}`);
    }
    return met || condition();
  }

  #watched(queue: HintQueue): HintQueue {
    return {
      ...queue,
      receive: async (max, signal) => {
        const hints: ReceivedHint[] = await queue.receive(max, signal);
        for (const { body = "" } of hints) this.receives.set(body, (this.receives.get(body) ?? 0) + 1);
        return hints;
      },
      sendToDlq: (body) => {
        this.dead++;
        return queue.sendToDlq(body);
      },
    };
  }
}
