import { AnchoredClock } from "../shared/clock.ts";
import { checkScheduledEvent } from "./core/event-shape.ts";
import { publishFleetGauges } from "./core/fleet-gauges.ts";
import { FreeSince } from "./core/free-since.ts";
import { runRounds } from "./core/rounds.ts";
import { connectionsTable, hintQueue, metricSink, runningTasks, wire } from "./wiring.ts";

/** Schedule → counts of the fleet as metrics, several times within its minute. */

const { settings, clock, logger, wrap } = wire(process.env, [
  "connectionsTable",
  "hintQueueUrl",
  "clusterName",
  "metricsUrl",
  "runningTasksUrl",
  "attemptTimeoutMs",
  "attempts",
  "skewMs",
  "metricsMs",
]);

const MAX_FOLLOWED = 50_000;
const PAGE_SIZE = 1_000;

const sources = {
  table: connectionsTable(settings),
  queue: hintQueue(settings),
  tasks: runningTasks(settings),
  sink: metricSink(settings, "fleet-metrics"),
  freeSince: new FreeSince(MAX_FOLLOWED),
};

export const handler = wrap(async (event, context) => {
  checkScheduledEvent(event);
  // Anchored anew each time: between invocations the process is frozen, and the monotonic clock may be too.
  const anchored = new AnchoredClock(clock);
  const deps = { ...sources, nowMs: () => anchored.nowMs(), logger };
  const remainingMs = () => context.getRemainingTimeInMillis();
  await runRounds({ clock, remainingMs, logger }, { name: "measurement", everyMs: settings.metricsMs }, (signal) =>
    publishFleetGauges(deps, { skewMs: settings.skewMs, pageSize: PAGE_SIZE }, { signal }),
  );
});
