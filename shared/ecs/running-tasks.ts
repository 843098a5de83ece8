import { DescribeServicesCommand, type ECSClient } from "@aws-sdk/client-ecs";

/** How many tasks the worker service runs: what fleet-wide metrics are divided by. */
export interface RunningTasks {
  /** @throws when nobody can say. */
  count(): Promise<number>;
}

export class EcsRunningTasks implements RunningTasks {
  readonly #client: ECSClient;
  readonly #cluster: string;
  readonly #service: string;

  constructor(client: ECSClient, cluster: string, service: string) {
    this.#client = client;
    this.#cluster = cluster;
    this.#service = service;
  }

  async count(): Promise<number> {
    const { services, failures } = await this.#client.send(
      new DescribeServicesCommand({ cluster: this.#cluster, services: [this.#service] }),
    );
    const count = services?.[0]?.runningCount;
    if (count === undefined) throw new Error(`ECS does not know the service: ${failures?.[0]?.reason ?? "no answer"}`);
    return count;
  }
}

/** Reads `{ "runningTasks": n }` from an endpoint on loopback: the local counterpart of ECS. */
export class HttpRunningTasks implements RunningTasks {
  readonly #url: string;
  readonly #timeoutMs: number;

  constructor(url: string, timeoutMs: number) {
    this.#url = url;
    this.#timeoutMs = timeoutMs;
  }

  async count(): Promise<number> {
    const response = await fetch(this.#url, { signal: AbortSignal.timeout(this.#timeoutMs) });
    const text = await response.text();
    if (!response.ok) throw new Error(`running tasks endpoint answered ${response.status}`);
    const body = JSON.parse(text) as { runningTasks?: unknown } | null;
    const count = body?.runningTasks;
    if (typeof count !== "number" || !Number.isSafeInteger(count) || count < 0) {
      throw new Error("runningTasks must be a non-negative integer");
    }
    return count;
  }
}
