import { z } from "zod";

/** An event that is not of the kind this function handles. The message names every field and the rule it breaks. */
export class EventShapeError extends Error {
  override readonly name = "EventShapeError";
}

/** The field and the rule of each issue. */
export function issueTexts(error: z.ZodError): string[] {
  return error.issues.map(({ path, message }) => `${path.length === 0 ? "event" : path.join(".")}: ${message}`);
}

/** @throws {EventShapeError} */
export function parseEvent<T>(schema: z.ZodType<T>, event: unknown, what: string): T {
  const parsed = schema.safeParse(event);
  if (parsed.success) return parsed.data;
  throw new EventShapeError(`not ${what}: ${issueTexts(parsed.error).join("; ")}`);
}

/** As EventBridge sends it to the target of a schedule; its content means nothing here. */
const scheduledEvent = z.object({
  source: z.literal("aws.events"),
  "detail-type": z.literal("Scheduled Event"),
});

/** @throws {EventShapeError} */
export function checkScheduledEvent(event: unknown): void {
  parseEvent(scheduledEvent, event, "a scheduled event");
}
