/** CloudWatch namespace of everything the fleet publishes. */
export const METRICS_NAMESPACE = "WsFleet";

type Unit = "Count" | "Milliseconds" | "Count/Second";

/** Published by workers, every metrics interval; zeros are published too, since missing data blocks scaling. */
export const WORKER_METRICS = {
  ActiveConnections: "Count",
  OpenSockets: "Count",
  LeaseAcquired: "Count",
  LeaseAcquireConflicts: "Count",
  LeaseLost: "Count",
  LeaseFenced: "Count",
  RenewalLatency: "Milliseconds",
  LeaseTimeToDeadline: "Milliseconds",
  Reconnects: "Count",
  ConnectFailures: "Count",
  ConnectionsParked: "Count",
  MessagesStored: "Count",
  MessageWriteRetries: "Count",
  MessagesWithoutPosition: "Count",
  MessagesRepeated: "Count",
  MessagesRefused: "Count",
  MalformedHints: "Count",
  MalformedItems: "Count",
  HandoverDelay: "Milliseconds",
  ClockOffset: "Milliseconds",
} as const satisfies Record<string, Unit>;

/** Published by the control plane; they survive dead workers. */
export const CONTROL_METRICS = {
  StartedConnections: "Count",
  OwnedConnections: "Count",
  OrphanedConnections: "Count",
  OldestOrphanAge: "Milliseconds",
  ParkedConnections: "Count",
  RunningTasks: "Count",
  HintQueueDepth: "Count",
  HintBacklogPerTask: "Count",
  ConnectionsPerTask: "Count",
  MendedItems: "Count",
  MalformedItems: "Count",
} as const satisfies Record<string, Unit>;

export const METRIC_UNITS = { ...WORKER_METRICS, ...CONTROL_METRICS };
export type MetricName = keyof typeof METRIC_UNITS;
