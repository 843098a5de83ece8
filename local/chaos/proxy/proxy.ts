import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { Cancel, Clock } from "../../../shared/clock.ts";
import type { Random } from "../../../shared/random.ts";
import type { Fault } from "./fault.ts";
import { Link, type LinkRecord } from "./link.ts";

export interface ProxyOptions {
  readonly target: { readonly host: string; readonly port: number };
  readonly clock: Clock;
  /** Of the jitter. */
  readonly random: Random;
  /** Reads along, keeps a record of each connection, and can hit connections by their id (`/<kind>/<id>` is asked for). */
  readonly webSocket?: boolean;
}

/** Of the proxy's whole life. */
export interface ProxyTotals {
  connections: number;
  bytesOut: number;
  bytesIn: number;
  /** Connections that a fault broke off or refused. */
  broken: number;
}

/** A whole fleet dials at once after an outage. */
const BACKLOG = 4096;

/** A TCP proxy on a free port of 127.0.0.1 that can do to its connections what networks do. */
export class FaultProxy {
  readonly totals: ProxyTotals = { connections: 0, bytesOut: 0, bytesIn: 0, broken: 0 };
  /** WebSocket connections only. */
  readonly records: LinkRecord[] = [];
  readonly #options: ProxyOptions;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #faults = new Map<Fault, Cancel>();

  private constructor(options: ProxyOptions) {
    this.#options = options;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
  }

  static async start(options: ProxyOptions): Promise<FaultProxy> {
    const proxy = new FaultProxy(options);
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once("error", reject);
      proxy.#server.listen({ host: "127.0.0.1", port: 0, backlog: BACKLOG }, resolve);
    });
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections that are open now. */
  get open(): number {
    return this.#links.size;
  }

  begin(fault: Fault): void {
    this.#faults.set(fault, () => undefined);
    this.#refresh();
    if (fault.effect.kind === "reset") this.#resetRepeatedly(fault, fault.effect.everyMs);
  }

  /** Harmless for a fault that is not on. */
  end(fault: Fault): void {
    this.#faults.get(fault)?.();
    if (this.#faults.delete(fault)) this.#refresh();
  }

  async close(): Promise<void> {
    for (const cancel of this.#faults.values()) cancel();
    this.#faults.clear();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const link of this.#links) link.destroy();
    await closed;
  }

  #refresh(): void {
    for (const link of this.#links) link.refresh();
  }

  #resetRepeatedly(fault: Fault, everyMs: number): void {
    for (const link of this.#links) if (link.hitBy(fault)) link.break();
    const again = this.#options.clock.after(everyMs, () => this.#resetRepeatedly(fault, everyMs));
    this.#faults.set(fault, again);
  }

  #accept(client: Socket): void {
    const { target, clock, random, webSocket = false } = this.#options;
    this.totals.connections += 1;
    const link = new Link(client, {
      target,
      clock,
      random,
      webSocket,
      onBytes: (direction, bytes) => {
        if (direction === "out") this.totals.bytesOut += bytes;
        else this.totals.bytesIn += bytes;
      },
      faultsFor: (connectionId) => [...this.#faults.keys()].filter((fault) => fault.hits(connectionId)),
      onClosed: () => {
        this.#links.delete(link);
        if (link.record.brokenAtMs !== undefined) this.totals.broken += 1;
      },
    });
    this.#links.add(link);
    if (webSocket) this.records.push(link.record);
  }
}
