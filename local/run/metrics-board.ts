import { z } from "zod";
import type { MetricName } from "../../shared/metrics/names.ts";

const post = z.object({
  source: z.string().min(1),
  data: z.array(z.object({ name: z.string(), values: z.array(z.number()), counts: z.array(z.number()) })),
});

/** Keeps what workers and functions post as metrics: the sums of counters, the last value of gauges. */
export class MetricsBoard {
  readonly #sums = new Map<string, number>();
  readonly #sources = new Set<string>();

  /** @throws {z.ZodError} for anything but `{ source, data }` */
  accept(body: unknown): void {
    const { source, data } = post.parse(body);
    this.#sources.add(source);
    for (const { name, values, counts } of data) {
      const sum = values.reduce((total, value, at) => total + value * (counts[at] ?? 0), 0);
      this.#sums.set(name, (this.#sums.get(name) ?? 0) + sum);
    }
  }

  /** Whether this worker or function has posted yet. */
  heardOf(source: string): boolean {
    return this.#sources.has(source);
  }

  /** The sum of a counter over all sources since the start. */
  total(name: MetricName): number {
    return this.#sums.get(name) ?? 0;
  }
}
