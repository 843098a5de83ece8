import type { MetricDatum, MetricSink } from "./sink.ts";

/** Posts metrics as JSON `{ source, data }` to an endpoint on loopback: the local counterpart of CloudWatch. */
export class HttpSink implements MetricSink {
  readonly #url: string;
  readonly #source: string;
  readonly #timeoutMs: number;

  constructor(url: string, source: string, timeoutMs: number) {
    this.#url = url;
    this.#source = source;
    this.#timeoutMs = timeoutMs;
  }

  async publish(data: readonly MetricDatum[]): Promise<void> {
    const response = await fetch(this.#url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ source: this.#source, data }),
      signal: AbortSignal.timeout(this.#timeoutMs),
    });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`metrics endpoint answered ${response.status}`);
  }
}
