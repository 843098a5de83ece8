import type { Logger } from "../../../shared/logger.ts";
import { startChild, type StartedChild } from "../../stack/child.ts";
import type { ProxiesInput, ProxiesReady, ProxyAnswer, ProxyCallName, ProxyCalls } from "./protocol.ts";

interface Pending {
  readonly resolve: (result: object) => void;
  readonly reject: (error: Error) => void;
}

export interface ProxiesOptions extends ProxiesInput {
  readonly env: Record<string, string>;
  readonly logger: Logger;
  /** Told when the process ends and nobody asked for it. */
  readonly onLost?: ((what: string) => void) | undefined;
}

/** The runner's side of the process that holds all proxies. Calls are rejected when it refuses them or has ended. */
export class Proxies {
  readonly ports: readonly number[];
  readonly pid: number;
  readonly #child: StartedChild;
  readonly #pending = new Map<number, Pending>();
  #lastCall = 0;
  #gone = false;
  #stopping = false;

  private constructor(child: StartedChild, onLost: (what: string) => void) {
    this.#child = child;
    this.pid = child.pid;
    this.ports = (child.ready as ProxiesReady).ports;
    child.process.on("message", (answer: ProxyAnswer) => this.#receive(answer));
    void child.ended.then((how) => {
      this.#gone = true;
      if (!this.#stopping) onLost(`the network ended (${how})`);
      for (const { reject } of this.#pending.values()) reject(new Error("the network has ended"));
      this.#pending.clear();
    });
  }

  static async start({ env, logger, onLost = () => undefined, proxies, seed }: ProxiesOptions): Promise<Proxies> {
    const input: ProxiesInput = { proxies, seed };
    const module = new URL("./main.ts", import.meta.url);
    return new Proxies(await startChild({ name: "network", module, input, env, logger }), onLost);
  }

  async call<Name extends ProxyCallName>(
    name: Name,
    params: ProxyCalls[Name]["params"],
  ): Promise<ProxyCalls[Name]["result"]> {
    if (this.#gone) throw new Error(`${name}: the network has ended`);
    const call = (this.#lastCall += 1);
    return await new Promise<object>((resolve, reject) => {
      this.#pending.set(call, { resolve, reject });
      this.#child.process.send({ call, name, params });
    });
  }

  stop(): Promise<void> {
    this.#stopping = true;
    return this.#child.stop();
  }

  #receive(answer: ProxyAnswer): void {
    const pending = this.#pending.get(answer.call);
    this.#pending.delete(answer.call);
    if ("error" in answer) pending?.reject(new Error(answer.error));
    else pending?.resolve(answer.result);
  }
}
