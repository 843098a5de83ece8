import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { howEnded } from "../stack/child.ts";
import type { CallName, Calls, ChildMessage, SocketEvent, UpstreamConfig, UpstreamStatus } from "./protocol.ts";
import type { FeedKind } from "./transcript.ts";

const START_TIMEOUT_MS = 30_000;
const CALL_TIMEOUT_MS = 60_000;

interface Pending {
  readonly resolve: (result: object) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * The parent's side of the upstream process. Every call is rejected when the upstream refuses it (with its reason),
 * dies, or does not answer in a minute.
 */
export class Upstream {
  readonly port: number;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #listeners = new Set<(event: SocketEvent) => void>();
  #lastId = 0;
  #ended = false;
  #onLost: (what: string) => void = () => undefined;
  #stopping = false;

  private constructor(child: ChildProcess, pid: number, port: number) {
    this.#child = child;
    this.pid = pid;
    this.port = port;
    child.on("message", (message: ChildMessage) => this.#receive(message));
    child.on("exit", (code, signal) => this.#end(`the upstream ended (${howEnded(code, signal)})`));
  }

  /** Forks the upstream and waits until it listens. The child ends by itself when this process does. */
  static async start(): Promise<Upstream> {
    const child = fork(fileURLToPath(new URL("./main.ts", import.meta.url)), [], {
      execArgv: [],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    try {
      const signal = AbortSignal.timeout(START_TIMEOUT_MS);
      const first = (await Promise.race([
        once(child, "message", { signal }),
        once(child, "exit", { signal }).then(([code]) => {
          throw new Error(`the upstream ended before it listened (exit code ${String(code)})`);
        }),
      ])) as [ChildMessage];
      if (first[0].type !== "ready" || child.pid === undefined) throw new Error("the upstream did not say it is ready");
      return new Upstream(child, child.pid, first[0].port);
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
  }

  /** The URL to store for a connection; `{cursor}` stands for the position to resume from. */
  wsUrl(kind: FeedKind, connectionId: string): string {
    const query = kind === "replay" ? "?cursor={cursor}" : "";
    return `ws://127.0.0.1:${this.port}/${kind}/${connectionId}${query}`;
  }

  /** Told once, when the process ends and nobody asked for it. */
  onLost(listener: (what: string) => void): void {
    this.#onLost = listener;
  }

  /** @returns the function that ends the subscription */
  onEvent(listener: (event: SocketEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async configure(config: UpstreamConfig): Promise<{ segmentsPerConnection: number }> {
    return await this.#call("configure", { config });
  }

  async status(): Promise<UpstreamStatus> {
    return await this.#call("status", {});
  }

  /** Writes the records to `path`; read them with `readRecord`. */
  async report(path: string): Promise<{ path: string }> {
    return await this.#call("report", { path });
  }

  async closeAll(code = 1001): Promise<{ closed: number }> {
    return await this.#call("close-all", { code });
  }

  async refuse(ms: number, status = 503): Promise<void> {
    await this.#call("refuse", { ms, status });
  }

  async stall(ms: number): Promise<void> {
    await this.#call("stall", { ms });
  }

  async terminate(connectionIds?: readonly string[]): Promise<{ terminated: number }> {
    return await this.#call("terminate", connectionIds === undefined ? {} : { connectionIds });
  }

  /** Ends the process; open sockets are cut. Harmless when it has already ended. */
  async stop(): Promise<void> {
    if (this.#ended) return;
    this.#stopping = true;
    const exited = once(this.#child, "exit");
    this.#child.disconnect();
    await exited;
  }

  async #call<Name extends CallName>(call: Name, params: Calls[Name]["params"]): Promise<Calls[Name]["result"]> {
    if (this.#ended) throw new Error(`${call}: the upstream has ended`);
    const id = (this.#lastId += 1);
    return await new Promise<object>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        reject(new Error(`${call}: no answer from the upstream in ${CALL_TIMEOUT_MS} ms`));
      }, CALL_TIMEOUT_MS);
      this.#pending.set(id, { resolve, reject: (error) => reject(new Error(`${call}: ${error.message}`)), timer });
      this.#child.send({ id, call, params });
    });
  }

  #receive(message: ChildMessage): void {
    switch (message.type) {
      case "ready":
        return;
      case "events":
        for (const event of message.events) for (const listener of this.#listeners) listener(event);
        return;
      case "result":
        this.#take(message.id)?.resolve(message.result);
        return;
      case "failure":
        this.#take(message.id)?.reject(new Error(message.error));
        return;
    }
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    if (pending !== undefined) clearTimeout(pending.timer);
    this.#pending.delete(id);
    return pending;
  }

  #end(reason: string): void {
    this.#ended = true;
    if (!this.#stopping) this.#onLost(reason);
    for (const id of [...this.#pending.keys()]) this.#take(id)?.reject(new Error(reason));
  }
}
