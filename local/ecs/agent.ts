import type { Logger } from "../../shared/logger.ts";
import { startChild, type StartedChild } from "../stack/child.ts";
import type { AgentCall, AgentMessage, Launch, Signal, Signalled, TaskEnded } from "./agent-protocol.ts";

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
  #lastId = 0;
  #gone = false;

  constructor(child: StartedChild) {
    this.#child = child;
    child.process.on("message", (message: AgentMessage) => this.#receive(message));
    void child.ended.then(() => {
      this.#gone = true;
      for (const { reject } of this.#pending.values()) reject(new Error("the task agent has ended"));
      this.#pending.clear();
    });
  }

  async launch(launch: Launch): Promise<{ readonly pid: number }> {
    return (await this.#call({ launch })) as { pid: number };
  }

  async signal(signal: Signal): Promise<Signalled> {
    return (await this.#call({ signal })) as Signalled;
  }

  onEnded(listener: (ended: TaskEnded) => void): void {
    this.#listeners.push(listener);
  }

  stop(): Promise<void> {
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
      for (const listener of this.#listeners) listener(message.ended);
      return;
    }
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if ("error" in message) pending?.reject(new Error(message.error));
    else pending?.resolve(message.result);
  }
}
