import { AnchoredClock } from "../shared/clock.ts";
import { single } from "../shared/metrics/sink.ts";
import { auditConnections } from "./core/audit-connections.ts";
import { checkScheduledEvent } from "./core/event-shape.ts";
import { connectionsTable, metricSink, wire } from "./wiring.ts";

/** Schedule → slow scan that mends leases which the index cannot show, and counts items that no worker can act on. */

const { settings, clock, logger, wrap } = wire(process.env, [
  "connectionsTable",
  "metricsUrl",
  "attemptTimeoutMs",
  "attempts",
  "leaseMs",
  "maxParkMs",
]);

/** About 100 read units a second for items of 4 KB, and 160,000 items within the function's 14 minutes. */
const PACE = { pageSize: 100, itemsPerSecond: 200 };

const table = connectionsTable(settings);
const sink = metricSink(settings, "audit");
const request = { leaseMs: settings.leaseMs, maxParkMs: settings.maxParkMs, ...PACE };

export const handler = wrap(async (event, context) => {
  checkScheduledEvent(event);
  const anchored = new AnchoredClock(clock);
  const remainingMs = () => context.getRemainingTimeInMillis();
  const result = await auditConnections({ table, clock, nowMs: () => anchored.nowMs(), remainingMs, logger }, request);
  await sink.publish([single("MendedItems", result.mended), single("MalformedItems", result.malformed)]);
});
