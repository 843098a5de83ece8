import { z } from "zod";
import { checkConnectionId } from "../connection/item.ts";

/** Why somebody thinks that a connection wants an owner. For people and metrics: no decision rests on it. */
export const HINT_REASONS = ["started", "orphaned"] as const;
export type HintReason = (typeof HINT_REASONS)[number];

const hintSchema = z.object({
  v: z.literal(1),
  connection_id: z.string().superRefine((id, context) => {
    const problem = checkConnectionId(id);
    if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
  }),
  reason: z.enum(HINT_REASONS),
  hinted_at_ms: z.number().int().nonnegative(),
  free_since_ms: z.number().int().nonnegative().optional(),
});

/** "Look at this one." Never ownership: losing every hint, or getting each ten times in any order, must be harmless. */
export interface Hint {
  readonly connectionId: string;
  readonly reason: HintReason;
  readonly hintedAtMs: number;
  /** When the lease ended or was freed (ms since the Unix epoch), where known: hand-over delays are measured from it. */
  readonly freeSinceMs?: number;
}

/** Longest body that is parsed; a hint has about 150 bytes, an id at most 1,024, which escapes may make 3,072. */
const MAX_BODY_LENGTH = 4096;

/** In ASCII: SQS refuses bodies with characters that an id may have, such as U+FFFF. */
export function encodeHint(hint: Hint): string {
  const body = JSON.stringify({
    v: 1,
    connection_id: hint.connectionId,
    reason: hint.reason,
    hinted_at_ms: hint.hintedAtMs,
    ...(hint.freeSinceMs === undefined ? {} : { free_since_ms: hint.freeSinceMs }),
  });
  return body.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The hint, or the field and rule that a body breaks. Extra fields are allowed, so that newer producers stay readable. */
export function parseHint(body: string | undefined): Hint | { readonly problem: string } {
  if (body === undefined || body.length > MAX_BODY_LENGTH) {
    return { problem: `body must be JSON of at most ${MAX_BODY_LENGTH} characters` };
  }
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return { problem: "body must be JSON" };
  }
  const parsed = hintSchema.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { problem: `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "invalid"}` };
  }
  return {
    connectionId: parsed.data.connection_id,
    reason: parsed.data.reason,
    hintedAtMs: parsed.data.hinted_at_ms,
    ...(parsed.data.free_since_ms === undefined ? {} : { freeSinceMs: parsed.data.free_since_ms }),
  };
}
