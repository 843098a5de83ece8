import type { Logger } from "../../shared/logger.ts";
import { startChild, type StartedChild } from "../stack/child.ts";
import type { AgentCall, AgentMessage, Launch, Signal, Signalled, TaskEnded } from "./agent-protocol.ts";
import { sendSignal } from "./processes.ts";

interface Pending {
  readonly resolve: (result: Signalled | { readonly pid: number }) => void;
  readonly reject: (error: Error) => void;
}

/** Runs tasks as process groups. They end with it, and it ends with this process. */
export interface TaskAgent {
  /** @throws when the program cannot be started */
  launch(launch: Launch): Promise<{ readonly pid: number }>;
  /** @throws when the task does not run, or has no worker to signal */
  signal(signal: Signal): Promise<Signalled>;
  onEnded(listener: (ended: TaskEnded) => void): void;
  /** Told once, when the agent ends and nobody asked for it; its tasks are killed then. */
  onLost(listener: (what: string) => void): void;
  /** Kills what still runs; repeatable. */
  stop(): Promise<void>;
}

export async function startAgent(options: {
  readonly env: Record<string, string>;
  readonly logger: Logger;
}): Promise<TaskAgent> {
  const child = await startChild({
    name: "task agent",
    module: new URL("./agent-main.ts", import.meta.url),
    input: {},
    ...options,
  });
  return new AgentClient(child);
}

class AgentClient implements TaskAgent {
  readonly #child: StartedChild;
  readonly #pending = new Map<number, Pending>();
  readonly #listeners: ((ended: TaskEnded) => void)[] = [];
  /** The group of each task that runs. */
  readonly #groups = new Map<string, number>();
  readonly #ended = new Set<string>();
  #onLost: (what: string) => void = () => undefined;
  #lastId = 0;
  #gone = false;
  #stopping = false;

  constructor(child: StartedChild) {
    this.#child = child;
    child.process.on("message", (message: AgentMessage) => this.#receive(message));
    void child.ended.then((how) => {
      this.#gone = true;
      // An agent that was killed could not take its tasks along.
      for (const pid of this.#groups.values()) sendSignal(-pid, "SIGKILL");
      if (!this.#stopping) this.#onLost(`the task agent ended (${how})`);
      for (const { reject } of this.#pending.values()) reject(new Error("the task agent has ended"));
      this.#pending.clear();
    });
  }

  async launch(launch: Launch): Promise<{ readonly pid: number }> {
    const launched = (await this.#call({ launch })) as { pid: number };
    // It may have ended before the answer came.
    if (!this.#ended.has(launch.taskId)) this.#groups.set(launch.taskId, launched.pid);
    return launched;
  }

  async signal(signal: Signal): Promise<Signalled> {
    return (await this.#call({ signal })) as Signalled;
  }

  onEnded(listener: (ended: TaskEnded) => void): void {
    this.#listeners.push(listener);
  }

  onLost(listener: (what: string) => void): void {
    this.#onLost = listener;
  }

  stop(): Promise<void> {
    this.#stopping = true;
    return this.#child.stop();
  }

  #call(call: AgentCall): Promise<Signalled | { readonly pid: number }> {
    if (this.#gone) return Promise.reject(new Error("the task agent has ended"));
    const id = (this.#lastId += 1);
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#child.process.send({ id, ...call });
    });
  }

  #receive(message: AgentMessage): void {
    if ("ended" in message) {
      this.#ended.add(message.ended.taskId);
      this.#groups.delete(message.ended.taskId);
      for (const listener of this.#listeners) listener(message.ended);
      return;
    }
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if ("error" in message) pending?.reject(new Error(message.error));
    else pending?.resolve(message.result);
  }
}
