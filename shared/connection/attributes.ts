/** Attribute names of the `connections` table; serverless.yml declares the same keys (held together by a test). */
export const CONNECTION = {
  id: "connection_id",
  desiredState: "desired_state",
  wsUrl: "ws_url",
  upstream: "upstream",
  owner: "lease_owner",
  expiresAtMs: "lease_expires_at_ms",
  epoch: "lease_epoch",
  lastSeq: "last_seq",
  lastCursor: "last_cursor",
  lastError: "last_error",
  failureCount: "failure_count",
} as const;

/** GSI (`desired_state`, `lease_expires_at_ms`), projecting `lease_owner`: orphans, owned and parked counts. */
export const BY_STATE_INDEX = "by_state";
/** GSI (`lease_owner`), keys only: what a task holds. A renewal does not touch it. */
export const BY_OWNER_INDEX = "by_owner";

export const DESIRED_STATES = ["STARTED", "STOPPED"] as const;
/** What the user wants; only producers write it. */
export type DesiredState = (typeof DESIRED_STATES)[number];
