import type { Logger } from "../../shared/logger.ts";
import type { Detour } from "../run/fleet.ts";
import { basicEnv } from "../stack/child-env.ts";
import type { Stack } from "../stack/stack.ts";
import type { Upstream } from "../upstream/client.ts";
import type { FeedKind } from "../upstream/transcript.ts";
import { Proxies } from "./proxy/client.ts";
import type { LinkRecord } from "./proxy/link.ts";
import type { FaultFigures, FaultRequest } from "./proxy/protocol.ts";
import type { ProxyTotals } from "./proxy/proxy.ts";

export interface NetworkOptions {
  readonly stack: Stack;
  readonly upstream: Upstream;
  readonly workers: number;
  /** Of the jitter. */
  readonly seed: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
  readonly onLost?: ((what: string) => void) | undefined;
}

/** One of the ways through the proxies; `slot`: the worker's place, from 0. */
export type Way =
  { readonly at: "upstream" | "functions" } | { readonly at: "dynamodb" | "sqs"; readonly slot: number };

export type NetworkTotals = Readonly<Record<"upstream" | "dynamodb" | "sqs" | "functions", Readonly<ProxyTotals>>>;

const UPSTREAM = 0;
/** Each client has a proxy in front of DynamoDB, and behind it in the list one in front of SQS; the functions come first. */
const FUNCTIONS = 1;
const firstOf = (slot: number): number => 3 + 2 * slot;

/** Everything between the processes of the fleet and what they talk to: a proxy for each way, in a process of their own. */
export class Network implements Detour {
  readonly #stack: Stack;
  readonly #workers: number;
  readonly #proxies: Proxies;

  private constructor(stack: Stack, workers: number, proxies: Proxies) {
    this.#stack = stack;
    this.#workers = workers;
    this.#proxies = proxies;
  }

  static async start({ stack, upstream, workers, seed, env, logger, onLost }: NetworkOptions): Promise<Network> {
    const toward = (endpoint: string) => {
      const { hostname, port } = new URL(endpoint);
      return { target: { host: hostname, port: Number(port) }, webSocket: false };
    };
    const proxies = await Proxies.start({
      proxies: [
        { target: { host: "127.0.0.1", port: upstream.port }, webSocket: true },
        ...Array.from({ length: 1 + workers }, () => [
          toward(stack.dynamodbEndpoint),
          toward(stack.sqsEndpoint),
        ]).flat(),
      ],
      seed,
      env: basicEnv(env),
      logger,
      onLost,
    });
    return new Network(stack, workers, proxies);
  }

  get functionEnv(): Readonly<Record<string, string>> {
    return this.#envOf(FUNCTIONS);
  }

  taskEnv(slot: number): Readonly<Record<string, string>> {
    return this.#envOf(firstOf(slot));
  }

  /** As {@link Upstream.wsUrl}, by way of the proxy. */
  wsUrl(kind: FeedKind, connectionId: string): string {
    const query = kind === "replay" ? "?cursor={cursor}" : "";
    return `ws://127.0.0.1:${this.#port(UPSTREAM)}/${kind}/${connectionId}${query}`;
  }

  async begin(fault: Omit<FaultRequest, "proxies">, way: Way): Promise<void> {
    await this.#proxies.call("begin", { ...fault, proxies: placesOf(way) });
  }

  async end(id: number): Promise<FaultFigures> {
    return await this.#proxies.call("end", { id });
  }

  /** Of all connections to the upstream so far. */
  async links(): Promise<readonly LinkRecord[]> {
    return (await this.#proxies.call("records", { proxy: UPSTREAM })).records;
  }

  async totals(): Promise<NetworkTotals> {
    const { totals } = await this.#proxies.call("totals", {});
    const at = (...places: number[]): ProxyTotals => sum(places.flatMap((place) => totals[place] ?? []));
    const slots = Array.from({ length: this.#workers }, (_, slot) => firstOf(slot));
    return {
      upstream: at(UPSTREAM),
      dynamodb: at(...slots),
      sqs: at(...slots.map((first) => first + 1)),
      functions: at(FUNCTIONS, FUNCTIONS + 1),
    };
  }

  async close(): Promise<void> {
    await this.#proxies.stop();
  }

  #port(place: number): number {
    const port = this.#proxies.ports[place];
    if (port === undefined) throw new RangeError(`there is no proxy ${place}`);
    return port;
  }

  #envOf(first: number): Record<string, string> {
    const queues = `http://127.0.0.1:${this.#port(first + 1)}`;
    // Clients may follow the host of a queue's URL.
    const through = (queueUrl: string): string => `${queues}${new URL(queueUrl).pathname}`;
    return {
      AWS_ENDPOINT_URL_DYNAMODB: `http://127.0.0.1:${this.#port(first)}`,
      AWS_ENDPOINT_URL_SQS: queues,
      WS_FLEET_HINT_QUEUE_URL: through(this.#stack.hintQueueUrl),
      WS_FLEET_DLQ_URL: through(this.#stack.dlqUrl),
    };
  }
}

function placesOf(way: Way): number[] {
  switch (way.at) {
    case "upstream":
      return [UPSTREAM];
    case "functions":
      return [FUNCTIONS, FUNCTIONS + 1];
    case "dynamodb":
      return [firstOf(way.slot)];
    case "sqs":
      return [firstOf(way.slot) + 1];
  }
}

function sum(totals: readonly ProxyTotals[]): ProxyTotals {
  const all = { connections: 0, bytesOut: 0, bytesIn: 0, broken: 0 };
  for (const one of totals) for (const name of Object.keys(all) as (keyof ProxyTotals)[]) all[name] += one[name];
  return all;
}
