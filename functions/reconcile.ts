import { AnchoredClock } from "../shared/clock.ts";
import { checkScheduledEvent } from "./core/event-shape.ts";
import { RecentHints } from "./core/recent-hints.ts";
import { runRounds } from "./core/rounds.ts";
import { sweep } from "./core/sweep.ts";
import { connectionsTable, hintQueue, wire } from "./wiring.ts";

/** Schedule → orphan query → hints. Sweeps several times within its minute. */

const { settings, clock, logger, wrap } = wire(process.env, [
  "connectionsTable",
  "hintQueueUrl",
  "attemptTimeoutMs",
  "attempts",
  "skewMs",
  "sweepMs",
]);

/** A worker that got a hint acts on it within seconds, or never. */
const REHINT_MS = 10_000;
const MAX_HINTS_PER_SWEEP = 10_000;
const MAX_RECENT_HINTS = 50_000;
const SWEEP = { skewMs: settings.skewMs, pageSize: 1_000, maxHints: MAX_HINTS_PER_SWEEP, inFlight: 8 };

const table = connectionsTable(settings);
const queue = hintQueue(settings);
const recent = new RecentHints(REHINT_MS, MAX_RECENT_HINTS);

export const handler = wrap(async (event, context) => {
  checkScheduledEvent(event);
  // Anchored anew each time: between invocations the process is frozen, and the monotonic clock may be too.
  const anchored = new AnchoredClock(clock);
  const remainingMs = () => context.getRemainingTimeInMillis();
  await runRounds({ clock, remainingMs, logger }, { name: "sweep", everyMs: settings.sweepMs }, (signal) =>
    sweep({ table, queue, recent, nowMs: () => anchored.nowMs(), logger }, SWEEP, { signal }),
  );
});
