import type { ChildProcess } from "node:child_process";
import { EventEmitter } from "node:events";
import { AnchoredClock } from "../../../shared/clock.ts";
import type { Logger } from "../../../shared/logger.ts";
import type { OwnershipJournal } from "../../../worker/lease/journal.ts";
import { ClockGuard } from "../../../worker/lease/clock-guard.ts";
import type { WorkerSettings } from "../../../worker/settings.ts";
import { supervise } from "../../../worker/supervision/supervise.ts";
import { EXIT } from "../../../worker/exit-codes.ts";
import { CLOCK_PROBES, Worker } from "../../../worker/worker.ts";
import type { WorkerView } from "../checker/ownership.ts";
import type { Fleet } from "./fleet.ts";
import { Machine, type MachineClockSettings } from "../engine/machine.ts";
import { SimProcess } from "../engine/process.ts";
import type { Seeded } from "../engine/seeded.ts";
import { SimSocket } from "./socket.ts";

/** What is left of a worker process, as its supervisor sees it. */
class SimChild extends EventEmitter {
  readonly #onSignal: (signal: NodeJS.Signals) => void;

  constructor(onSignal: (signal: NodeJS.Signals) => void) {
    super();
    this.#onSignal = onSignal;
  }

  kill(signal: NodeJS.Signals): boolean {
    this.#onSignal(signal);
    return true;
  }
}

const BOOT_MS: readonly [number, number] = [50, 800];
/** How soon the supervisor collects the exit of its child. */
const EXIT_NOTICE_MS: readonly [number, number] = [1, 20];

/** One ECS task: a machine with a supervisor as PID 1 and one worker process, both the real code. */
export class SimTask implements WorkerView {
  readonly task: string;
  readonly machine: Machine;
  readonly worker: SimProcess;
  readonly supervisor: SimProcess;
  readonly settings: WorkerSettings;
  /** True once everything of the task is over; its exit code tells whether the orchestrator saw it end. */
  stopped = false;
  exitCode: number | undefined;
  /** The worker died with messages received and not stored, for all that anybody knows. */
  diedAtMs: number | undefined;
  core: Worker | undefined;
  readonly #fleet: Fleet;
  readonly #seeded: Seeded;
  readonly #signals = new EventEmitter();
  readonly #guard: ClockGuard;
  #draining = false;
  /** Between the log lines that say so; the proof itself may be forgotten meanwhile. */
  #clockPause = false;

  constructor(fleet: Fleet, task: string, clock: MachineClockSettings, settings: WorkerSettings) {
    this.#fleet = fleet;
    this.task = task;
    this.settings = settings;
    this.#seeded = fleet.seeded.fork(task);
    this.machine = new Machine(fleet.scheduler, clock);
    this.worker = new SimProcess(task, fleet.scheduler, this.machine, this.#seeded.fork("timers"));
    this.supervisor = new SimProcess(`${task}/pid1`, fleet.scheduler, this.machine, this.#seeded.fork("pid1-timers"));
    this.#guard = new ClockGuard(this.worker.clock, {
      skewMs: settings.skewMs,
      windowMs: 60_000,
      minObservations: CLOCK_PROBES,
    });
    this.worker.onDeath(() => {
      this.diedAtMs ??= fleet.scheduler.nowMs;
      fleet.ownership.died(task);
    });
  }

  get alive(): boolean {
    return this.worker.alive;
  }

  get draining(): boolean {
    return this.#draining;
  }

  givingBack(): boolean {
    return this.#draining || this.#clockPause;
  }

  /** Runs the real supervisor over this task's child process. */
  start(): void {
    const { scheduler, store } = this.#fleet;
    const { attempts, attemptTimeoutMs, connectionsTable } = this.settings;
    const client = store.client({
      process: this.supervisor,
      place: this.task,
      task: undefined,
      attempts,
      attemptTimeoutMs,
    });
    void supervise({
      task: this.task,
      table: { client, tableName: connectionsTable },
      clock: this.supervisor.clock,
      logger: this.#logger(`${this.task}/1`),
      settings: this.settings,
      signals: this.#signals,
      spawn: () => this.#spawn() as unknown as ChildProcess,
    }).then((code) => {
      this.exitCode = code;
      this.#end(`task ended with code ${code}`);
    });
    scheduler.in(this.#seeded.between(...BOOT_MS), () => this.worker.deliver(() => this.#boot()));
  }

  sigterm(): void {
    this.supervisor.deliver(() => this.#signals.emit("SIGTERM", "SIGTERM"));
    // The orchestrator's own patience.
    this.#fleet.scheduler.in(this.settings.stopTimeoutMs, () => {
      if (this.stopped) return;
      this.#exit(null, "SIGKILL");
      this.supervisor.kill();
      this.exitCode = 137;
      this.#end("task killed at its stop timeout");
    });
  }

  /** The worker process dies; its supervisor lives and sees it. */
  crash(): void {
    this.#exit(EXIT.crashed, null);
  }

  /** Everything of the task is gone at once, and nobody saw it end. */
  loseHost(): void {
    for (const socket of this.#fleet.socketsOf(this.task)) socket.cut();
    this.worker.kill();
    this.supervisor.kill();
    this.#end("host lost");
  }

  #spawn(): SimChild {
    const child = new SimChild((signal) => {
      if (signal === "SIGTERM") this.worker.deliver(() => this.#drain());
      // Not a signal that a process sees: it works on a frozen one too.
      else if (signal === "SIGKILL") this.#exit(null, "SIGKILL");
    });
    this.#exited = (code, signal) => {
      this.#fleet.scheduler.in(this.#seeded.between(...EXIT_NOTICE_MS), () =>
        this.supervisor.deliver(() => child.emit("exit", code, signal)),
      );
    };
    return child;
  }

  #exited: (code: number | null, signal: NodeJS.Signals | null) => void = () => undefined;

  #boot(): void {
    const { clock } = this.worker;
    const { scheduler, store } = this.#fleet;
    const { attempts, attemptTimeoutMs } = this.settings;
    const anchored = new AnchoredClock(clock);
    const place = { process: this.worker, place: this.task, task: this.task };
    const core = new Worker({
      owner: this.task,
      settings: this.settings,
      clock,
      anchored,
      random: this.#seeded.fork("worker").random,
      logger: this.#logger(this.task),
      leaseClient: store.client({
        ...place,
        attempts,
        attemptTimeoutMs,
        ...(this.#fleet.guardBlind
          ? {}
          : { dates: { nowMs: () => anchored.nowMs(), seen: (date) => this.#guard.observe(date) } }),
      }),
      messageClient: store.client({ ...place, attempts, attemptTimeoutMs: 5000 }),
      queue: this.#fleet.queue.forWorker(this.worker),
      dial: (url, events, mayAct) => {
        const upstream = this.#fleet.upstream(new URL(url).pathname.slice(1));
        const { ownership } = this.#fleet;
        const socket = new SimSocket(
          {
            scheduler,
            seeded: this.#fleet.seeded.fork(`socket-${this.#fleet.sockets.length}`),
            process: this.worker,
            task: this.task,
            settings: this.settings,
            frame: (id, kind) => {
              if (this.worker.alive) ownership.frame(this.task, id, kind);
            },
            actingEpoch: (id) => ownership.actingEpoch(this.task, id),
          },
          upstream,
          url,
          events,
          mayAct,
        );
        this.#fleet.sockets.push(socket);
        return socket;
      },
      sink: { publish: () => Promise.resolve() },
      journal: this.#journal(),
      clockGuard: this.#guard,
    });
    this.core = core;
    void core.start();
  }

  #journal(): OwnershipJournal {
    return {
      record: (event, holding) => {
        if (!this.worker.alive) return;
        this.#fleet.tally.add(`journal: ${event}`);
        this.#fleet.ownership.journal(this, event, holding);
      },
    };
  }

  #drain(): void {
    this.#fleet.history.add(this.task, undefined, "SIGTERM");
    if (this.core === undefined) {
      this.#exit(null, "SIGTERM");
      return;
    }
    this.#draining = true;
    void this.core.drain().then((clean) => {
      if (!this.worker.alive) return;
      if (clean) this.diedAtMs = Infinity;
      this.#exit(clean ? EXIT.ok : EXIT.leasesLeft, null);
    });
  }

  #exit(code: number | null, signal: NodeJS.Signals | null): void {
    if (!this.worker.alive) return;
    this.#fleet.history.add(this.task, undefined, `worker process ends: ${signal ?? String(code)}`);
    this.worker.kill();
    this.#exited(code, signal);
  }

  #end(text: string): void {
    if (this.stopped) return;
    this.stopped = true;
    this.#fleet.history.add(this.task, undefined, text);
    this.#fleet.taskStopped(this);
  }

  #logger(actor: string): Logger {
    const say = (level: string) => (fields: object, message: string) => {
      if (!this.worker.alive && actor === this.task) return;
      if (message.startsWith("clock is off beyond the skew")) this.#clockPause = true;
      if (message === "clock anchored anew") this.#clockPause = false;
      this.#fleet.logged(actor, level, fields, message);
    };
    return { debug: () => undefined, info: say("info"), warn: say("warn"), error: say("error") };
  }
}
