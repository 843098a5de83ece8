import { z } from "zod";
import { checkConnectionId } from "../../shared/connection/item.ts";
import { issueTexts } from "./event-shape.ts";

const text = z.object({ S: z.string() });

/** DynamoDB's attribute values as a stream record carries them: numbers are text, in their shortest form. */
const imageSchema = z.object({
  connection_id: z.object({
    S: z.string().superRefine((id, context) => {
      const problem = checkConnectionId(id);
      if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
    }),
  }),
  desired_state: text.optional(),
  lease_owner: text.optional(),
  lease_expires_at_ms: z.object({ N: z.string() }).optional(),
});

const recordSchema = z.object({
  eventName: z.enum(["INSERT", "MODIFY", "REMOVE"]),
  dynamodb: z.object({ SequenceNumber: z.string().min(1), NewImage: imageSchema.optional() }),
});

/** A connection that became free to take. */
export interface StartedRecord {
  readonly kind: "started";
  readonly connectionId: string;
  readonly sequenceNumber: string;
}

export type RecordVerdict =
  | StartedRecord
  /** Any other change: a heartbeat, a stop, a park, a deletion. */
  | { readonly kind: "other" }
  /** Of another shape; `problem` names the field and the rule. */
  | { readonly kind: "malformed"; readonly problem: string };

/**
 * What one stream record means. The event source's filter is only an optimisation, so everything is judged again: a
 * connection became startable when it is STARTED, nobody owns it, and its expiry is 0 or missing.
 */
export function judgeRecord(record: unknown): RecordVerdict {
  const parsed = recordSchema.safeParse(record);
  if (!parsed.success) return { kind: "malformed", problem: issueTexts(parsed.error).join("; ") };
  const { eventName, dynamodb } = parsed.data;
  if (eventName === "REMOVE") return { kind: "other" };
  const image = dynamodb.NewImage;
  if (image === undefined) {
    return { kind: "malformed", problem: "dynamodb.NewImage: must be present, as in a stream of new images" };
  }
  if (image.desired_state?.S !== "STARTED" || image.lease_owner !== undefined) return { kind: "other" };
  if (image.lease_expires_at_ms !== undefined && image.lease_expires_at_ms.N !== "0") return { kind: "other" };
  return { kind: "started", connectionId: image.connection_id.S, sequenceNumber: dynamodb.SequenceNumber };
}
