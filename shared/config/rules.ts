import type { SettingName } from "./definitions.ts";

/** A relation without which the protocol's promises would not hold. */
export interface Rule {
  readonly uses: readonly SettingName[];
  readonly text: string;
  readonly holds: (value: (name: SettingName) => number) => boolean;
}

/** Longest interval between two renewals. */
export function maxHeartbeatMs(heartbeatMs: number, jitter: number): number {
  return heartbeatMs * (1 + jitter);
}

export const RULES: readonly Rule[] = [
  {
    uses: ["heartbeatMs", "heartbeatJitter", "attempts", "attemptTimeoutMs", "leaseMs", "marginMs"],
    text: "2 × longest heartbeat + attempts × attempt timeout must be less than lease − margin",
    holds: (v) =>
      2 * maxHeartbeatMs(v("heartbeatMs"), v("heartbeatJitter")) + v("attempts") * v("attemptTimeoutMs") <
      v("leaseMs") - v("marginMs"),
  },
  {
    uses: ["marginMs", "skewMs"],
    text: "margin must be more than 2 × skew: two clocks may each be off by the skew",
    holds: (v) => v("marginMs") > 2 * v("skewMs"),
  },
  {
    uses: ["targetConnections", "maxConnections"],
    text: "target connections must be at most 80 % of the cap, or the average could never exceed the target",
    holds: (v) => v("targetConnections") <= 0.8 * v("maxConnections"),
  },
  {
    uses: ["hintVisibilityMs", "acquireBudgetMs"],
    text: "hint visibility must be more than the acquire budget, or a hint reappears while it is being acted on",
    holds: (v) => v("hintVisibilityMs") > v("acquireBudgetMs"),
  },
  {
    uses: ["acquireBudgetMs", "leaseMs", "marginMs"],
    text: "acquire budget must be less than lease − margin",
    holds: (v) => v("acquireBudgetMs") < v("leaseMs") - v("marginMs"),
  },
  {
    uses: ["hintVisibilityMs"],
    text: "must be whole seconds: the queue counts in seconds",
    holds: (v) => v("hintVisibilityMs") % 1000 === 0,
  },
  {
    uses: ["longPollMs"],
    text: "must be whole seconds: the queue counts in seconds",
    holds: (v) => v("longPollMs") % 1000 === 0,
  },
  {
    uses: ["drainBudgetMs", "stopTimeoutMs"],
    text: "drain budget must be less than the stop timeout − 5 s",
    holds: (v) => v("drainBudgetMs") < v("stopTimeoutMs") - 5000,
  },
  {
    uses: ["closeGraceMs", "drainBudgetMs"],
    text: "close grace must be less than the drain budget",
    holds: (v) => v("closeGraceMs") < v("drainBudgetMs"),
  },
  {
    uses: ["pingIntervalMs", "idleTimeoutMs"],
    text: "ping interval must be less than half the idle timeout, or a quiet upstream is taken for a dead one",
    holds: (v) => v("pingIntervalMs") < v("idleTimeoutMs") / 2,
  },
  {
    uses: ["reconnectBaseMs", "reconnectCapMs"],
    text: "reconnect base must be at most the cap",
    holds: (v) => v("reconnectBaseMs") <= v("reconnectCapMs"),
  },
  {
    uses: ["parkBaseMs", "fatalParkMs", "maxParkMs"],
    text: "no park may be longer than the longest park",
    holds: (v) => v("parkBaseMs") <= v("maxParkMs") && v("fatalParkMs") <= v("maxParkMs"),
  },
  {
    uses: ["sweepMs"],
    text: "must be at most one minute, the interval of the schedule",
    holds: (v) => v("sweepMs") <= 60_000,
  },
  {
    uses: ["metricsMs"],
    text: "must be at most one minute, the interval of the schedule",
    holds: (v) => v("metricsMs") <= 60_000,
  },
];
