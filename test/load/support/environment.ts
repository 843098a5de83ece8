/** The fleet's own defaults, over the shortened timings that tests of single workers use. */
export const DEFAULT_TIMINGS = {
  WS_FLEET_LEASE_MS: "20000",
  WS_FLEET_HEARTBEAT_MS: "5000",
  WS_FLEET_MARGIN_MS: "3000",
  WS_FLEET_SKEW_MS: "1000",
  WS_FLEET_ATTEMPT_TIMEOUT_MS: "1000",
  WS_FLEET_HINT_VISIBILITY_MS: "3000",
  WS_FLEET_ACQUIRE_BUDGET_MS: "2500",
  WS_FLEET_LONG_POLL_MS: "10000",
} as const;
