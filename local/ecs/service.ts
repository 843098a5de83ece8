import type { Cancel, Clock } from "../../shared/clock.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import type { BusEvent } from "../triggers/event-bus.ts";
import type { TaskAgent } from "./agent.ts";
import type { Signalled, SignalTarget, TaskEnded } from "./agent-protocol.ts";
import { taskStateChange } from "./task-event.ts";
import { exitCodeOf, newTask, taskMetadata, type StopCode, type Task, type TaskTemplate } from "./task.ts";

export interface EcsServiceOptions {
  readonly agent: Pick<TaskAgent, "launch" | "signal" | "onEnded">;
  readonly template: TaskTemplate;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The program of a task. */
  readonly entry: string;
  readonly envOf: (taskId: string) => Readonly<Record<string, string>>;
  readonly logFileOf: (taskId: string) => string;
  readonly putEvent: (event: BusEvent) => void;
  /** From a task's end to the event that tells of it. */
  readonly eventDelayMs: number;
  /** From a task's end to the start of its replacement. */
  readonly replaceAfterMs: number;
  /** SIGTERM to SIGKILL. */
  readonly stopTimeoutMs: number;
}

/** How a task ended, when all is over. */
export interface EndedTask {
  readonly task: Readonly<Task>;
  /** Host clock milliseconds. */
  readonly atMs: number;
}

/** The network of a task is taken apart after its containers; then it counts as STOPPED. */
const DEPROVISION_MS = 1_500;

/** Plays an ECS service on Fargate: keeps its tasks running, tells of their changes, answers for their metadata. */
export class EcsService {
  readonly #options: EcsServiceOptions;
  readonly #tasks = new Map<string, Task>();
  readonly #ended: EndedTask[] = [];
  readonly #timers = new Set<Cancel>();
  readonly #restarts = new Map<number, number>();
  #desired = 0;
  #closed = false;

  constructor(options: EcsServiceOptions) {
    this.#options = options;
    options.agent.onEnded((ended) => this.#onEnded(ended));
  }

  /** Tasks whose processes run, by place. */
  get running(): readonly Readonly<Task>[] {
    return [...this.#tasks.values()].filter((task) => task.stoppedAtMs === undefined).sort((a, b) => a.slot - b.slot);
  }

  get ended(): readonly EndedTask[] {
    return this.#ended;
  }

  /** Replacements started in this place. */
  restarts(slot: number): number {
    return this.#restarts.get(slot) ?? 0;
  }

  /** Starts tasks up to the count, or asks the surplus to end. */
  async scale(desired: number): Promise<void> {
    this.#desired = desired;
    const running = this.running.filter(({ desiredStatus }) => desiredStatus === "RUNNING");
    const slots = new Set(running.map(({ slot }) => slot));
    const free = Array.from({ length: desired }, (_, slot) => slot).filter((slot) => !slots.has(slot));
    await Promise.all(free.map((slot) => this.#launch(slot)));
    const surplus = running.filter(({ slot }) => slot >= desired);
    await Promise.all(
      surplus.map(({ taskId }) =>
        this.#stop(taskId, "ServiceSchedulerInitiated", "Scaling activity initiated by the deployment"),
      ),
    );
  }

  /** Kills the worker process alone; its supervisor lives. */
  crash(taskId: string): Promise<Signalled> {
    return this.#signal(taskId, "worker", "SIGKILL");
  }

  /** Kills every process of the task at once. */
  kill(taskId: string): Promise<Signalled> {
    return this.#signal(taskId, "task", "SIGKILL");
  }

  /** Stops the task as StopTask does: SIGTERM, then SIGKILL when its time is over. */
  terminate(taskId: string): Promise<Signalled> {
    return this.#stop(taskId, "UserInitiated", "Task stopped by user");
  }

  freeze(taskId: string): Promise<Signalled> {
    return this.#signal(taskId, "task", "SIGSTOP");
  }

  thaw(taskId: string): Promise<Signalled> {
    return this.#signal(taskId, "task", "SIGCONT");
  }

  /** Undefined for a task that does not run. */
  metadata(taskId: string): object | undefined {
    const task = this.#tasks.get(taskId);
    return task === undefined || task.stoppedAtMs !== undefined
      ? undefined
      : taskMetadata(this.#options.template, task);
  }

  /** No more replacements and events. Tasks that run are the agent's to end. */
  close(): void {
    this.#closed = true;
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }

  #signal(taskId: string, target: SignalTarget, signal: NodeJS.Signals): Promise<Signalled> {
    return this.#options.agent.signal({ taskId, target, signal });
  }

  async #launch(slot: number): Promise<void> {
    const { agent, clock, entry, envOf, logFileOf, logger, template } = this.#options;
    const task = newTask(template, slot, clock.wallMs());
    this.#tasks.set(task.taskId, task);
    const { taskId } = task;
    try {
      const { pid } = await agent.launch({ taskId, entry, env: envOf(taskId), logFile: logFileOf(taskId) });
      logger.info({ taskId, slot, pid }, "task started");
    } catch (error) {
      this.#tasks.delete(taskId);
      throw error;
    }
    task.startedAtMs = clock.wallMs();
    // It may have ended before the answer came.
    if (task.stoppedAtMs === undefined) this.#change(task, { lastStatus: "RUNNING" });
  }

  async #stop(taskId: string, stopCode: StopCode, stoppedReason: string): Promise<Signalled> {
    const { clock, logger, stopTimeoutMs } = this.#options;
    const task = this.#tasks.get(taskId);
    if (task === undefined || task.stoppedAtMs !== undefined) throw new Error(`task ${taskId} does not run`);
    const signalled = await this.#signal(taskId, "supervisor", "SIGTERM");
    task.stoppingAtMs = clock.wallMs();
    this.#change(task, { desiredStatus: "STOPPED", lastStatus: "STOPPING", stopCode, stoppedReason });
    this.#later(stopTimeoutMs, () => {
      if (task.stoppedAtMs === undefined) {
        logger.error({ taskId }, "task did not end in time: killed");
        this.kill(taskId).catch((error: unknown) => logger.error(errorFields(error), "task could not be killed"));
      }
    });
    this.#replaceLater(task);
    return signalled;
  }

  #onEnded({ taskId, code, signal, atMs }: TaskEnded): void {
    const task = this.#tasks.get(taskId);
    if (task === undefined || task.stoppedAtMs !== undefined) return;
    const { clock, eventDelayMs, logger } = this.#options;
    const asked = task.desiredStatus === "STOPPED";
    task.exitCode = exitCodeOf(code, signal);
    task.stoppedAtMs = clock.wallMs();
    task.stoppingAtMs ??= task.stoppedAtMs;
    task.desiredStatus = "STOPPED";
    task.stopCode ??= "EssentialContainerExited";
    task.stoppedReason ??= "Essential container in task exited";
    this.#ended.push({ task, atMs });
    logger.info({ taskId, exitCode: task.exitCode, stopCode: task.stopCode }, "task ended");
    this.#later(eventDelayMs, () => this.#change(task, { lastStatus: "DEPROVISIONING" }));
    this.#later(eventDelayMs + DEPROVISION_MS, () => this.#change(task, { lastStatus: "STOPPED" }));
    if (!asked) this.#replaceLater(task);
  }

  #replaceLater({ slot }: Task): void {
    const { logger, replaceAfterMs } = this.#options;
    this.#later(replaceAfterMs, () => {
      if (slot >= this.#desired) return;
      this.#restarts.set(slot, this.restarts(slot) + 1);
      this.#launch(slot).catch((error: unknown) => logger.error(errorFields(error), "task could not be replaced"));
    });
  }

  /** Writes the change down and tells of it. */
  #change(task: Task, change: Partial<Task>): void {
    Object.assign(task, change);
    task.version += 1;
    if (this.#closed) return;
    const { clock, putEvent, template } = this.#options;
    putEvent(taskStateChange(template, task, clock.wallMs()));
  }

  #later(delayMs: number, act: () => void): void {
    if (this.#closed) return;
    const cancel = this.#options.clock.after(delayMs, () => {
      this.#timers.delete(cancel);
      act();
    });
    this.#timers.add(cancel);
  }
}
