import type { DynamoDBBatchResponse } from "aws-lambda";
import { z } from "zod";
import { parseEvent } from "./core/event-shape.ts";
import { hintStarted } from "./core/hint-started.ts";
import { withTimeLimit } from "./core/time-limit.ts";
import { hintQueue, wire } from "./wiring.ts";

/** Stream of the connections table → a hint for each connection that became startable. */

const { settings, clock, logger, wrap } = wire(process.env, ["hintQueueUrl", "attemptTimeoutMs", "attempts"]);

const queue = hintQueue(settings);
/** Each record is judged by itself, so that a poison one takes none of its neighbours along. */
const streamEvent = z.object({ Records: z.array(z.unknown()) });

export const handler = wrap(async (event, context): Promise<DynamoDBBatchResponse> => {
  const { Records } = parseEvent(streamEvent, event, "a DynamoDB stream event");
  const deps = { queue, nowMs: () => clock.wallMs(), logger };
  const remainingMs = () => context.getRemainingTimeInMillis();
  // What was not sent in time is reported, so that only that is repeated.
  const { failed } = await withTimeLimit({ clock, remainingMs }, (signal) => hintStarted(deps, Records, { signal }));
  return { batchItemFailures: failed.map((itemIdentifier) => ({ itemIdentifier })) };
});
