import type { RunningTasks } from "../../shared/ecs/running-tasks.ts";
import type { CallOptions, LeaseTable } from "../../shared/lease/index.ts";
import { errorFields, type Logger } from "../../shared/logger.ts";
import { single, type MetricDatum, type MetricSink } from "../../shared/metrics/sink.ts";
import { countFleet, type FleetCounts } from "./count-fleet.ts";
import type { FreeSince } from "./free-since.ts";
import type { HintQueue } from "./hint-queue.ts";

export interface FleetGaugesDeps {
  readonly table: LeaseTable;
  readonly queue: HintQueue;
  readonly tasks: RunningTasks;
  readonly sink: MetricSink;
  readonly freeSince: FreeSince;
  /** Anchored wall time, ms. */
  readonly nowMs: () => number;
  readonly logger: Logger;
}

export interface FleetGaugesRequest {
  readonly skewMs: number;
  readonly pageSize: number;
}

/**
 * Measures the fleet from outside it, so that the figures survive dead workers, and publishes what could be measured.
 * Zeros are published too, since missing data stops the scaling in both directions; so one source that cannot be asked
 * takes only its own metrics with it.
 *
 * @throws after publishing the rest when a source did not answer, so that a lasting failure reaches the function's alarm;
 * and when the sink did not take the metrics.
 */
export async function publishFleetGauges(
  deps: FleetGaugesDeps,
  { skewMs, pageSize }: FleetGaugesRequest,
  options?: CallOptions,
): Promise<readonly MetricDatum[]> {
  const nowMs = deps.nowMs();
  const errors: unknown[] = [];
  const ask = <T>(source: string, asked: Promise<T>): Promise<T | undefined> =>
    asked.catch((error: unknown) => {
      errors.push(error);
      deps.logger.error({ source, ...errorFields(error) }, "a source of metrics did not answer");
      return undefined;
    });
  const [counts, depth, tasks] = await Promise.all([
    ask("connections table", countFleet(deps.table, deps.freeSince, { nowMs, skewMs, pageSize }, options)),
    ask("hint queue", deps.queue.depth(options)),
    ask("running tasks", deps.tasks.count()),
  ]);
  const data = gauges(counts, depth, tasks);
  if (data.length > 0) await deps.sink.publish(data);
  deps.logger.debug(Object.fromEntries(data.map(({ name, values }) => [name, values[0]])), "fleet measured");
  if (errors.length > 0) throw new AggregateError(errors, `${errors.length} of 3 sources of metrics did not answer`);
  return data;
}

function gauges(
  counts: FleetCounts | undefined,
  depth: number | undefined,
  tasks: number | undefined,
): readonly MetricDatum[] {
  const data: MetricDatum[] = [];
  if (counts !== undefined) {
    data.push(
      single("StartedConnections", counts.started),
      single("OwnedConnections", counts.owned),
      single("OrphanedConnections", counts.orphaned),
      single("OldestOrphanAge", counts.oldestOrphanAgeMs),
      single("ParkedConnections", counts.parked),
    );
  }
  if (depth !== undefined) data.push(single("HintQueueDepth", depth));
  if (tasks === undefined) return data;
  data.push(single("RunningTasks", tasks));
  // Without a task the whole load waits for the first one.
  const share = (total: number): number => total / Math.max(1, tasks);
  if (depth !== undefined) data.push(single("HintBacklogPerTask", share(depth)));
  // What wants a place, owned or not: a parked connection takes up none.
  if (counts !== undefined) data.push(single("ConnectionsPerTask", share(counts.started - counts.parked)));
  return data;
}
