import { z } from "zod";

/** Every setting of the fleet: its one name, unit, default and meaning. The documents' table is generated from here. */
export interface Definition {
  readonly env: string;
  /** Absent: required by the programs that use it. */
  readonly default?: string;
  readonly schema: z.ZodType<unknown, string>;
  readonly meaning: string;
}

const integer = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, "must be a whole number")
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`));
const ms = (min = 1, max = 86_400_000) => integer(min, max);
const ratio = z
  .string()
  .regex(/^(0|0?\.\d+|1|1\.0+|0\.\d+)$/, "must be a number from 0 to 1")
  .transform(Number)
  .pipe(z.number().min(0).max(1));
const text = z.string().min(1, "must not be empty");
const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
const httpUrl = z.string().superRefine((value, context) => {
  if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) {
    context.addIssue({ code: "custom", message: "must be an http or https URL" });
  }
});

const define = <S extends z.ZodType<unknown, string>>(
  env: string,
  fallback: string | undefined,
  schema: S,
  meaning: string,
): { env: string; default?: string; schema: S; meaning: string } => ({
  env,
  ...(fallback === undefined ? {} : { default: fallback }),
  schema,
  meaning,
});

/** The lease protocol's timings, which both planes must agree on. */
export const TIMING_DEFINITIONS = {
  leaseMs: define("WS_FLEET_LEASE_MS", "20000", ms(), "How long a lease lasts without a renewal."),
  heartbeatMs: define("WS_FLEET_HEARTBEAT_MS", "5000", ms(), "Mean interval between renewals of one lease."),
  heartbeatJitter: define("WS_FLEET_HEARTBEAT_JITTER", "0.2", ratio, "Share by which an interval varies at random."),
  marginMs: define(
    "WS_FLEET_MARGIN_MS",
    "3000",
    ms(),
    "How long before the written expiry an owner stops acting by its own clock.",
  ),
  skewMs: define("WS_FLEET_SKEW_MS", "1000", ms(0), "Clock offset that is tolerated between any two machines."),
  attemptTimeoutMs: define("WS_FLEET_ATTEMPT_TIMEOUT_MS", "1000", ms(), "Limit of one attempt of a lease operation."),
  attempts: define("WS_FLEET_ATTEMPTS", "3", integer(1, 10), "Attempts of one lease operation."),
  sweepMs: define("WS_FLEET_SWEEP_MS", "10000", ms(1000), "Interval between sweeps inside the one-minute schedule."),
  metricsMs: define("WS_FLEET_METRICS_MS", "30000", ms(1000), "Interval between published metrics."),
  maxParkMs: define("WS_FLEET_MAX_PARK_MS", "3600000", ms(1000), "Longest time a connection is parked."),
} as const;

/** Where things are; `serverless.yml` and the local runner hand them in. */
export const PLACE_DEFINITIONS = {
  connectionsTable: define("WS_FLEET_CONNECTIONS_TABLE", undefined, text, "Name of the connections table."),
  messagesTable: define("WS_FLEET_MESSAGES_TABLE", undefined, text, "Name of the messages table."),
  hintQueueUrl: define("WS_FLEET_HINT_QUEUE_URL", undefined, httpUrl, "URL of the hint queue."),
  dlqUrl: define("WS_FLEET_DLQ_URL", undefined, httpUrl, "URL of the queue for hints that nobody can read."),
  serviceName: define("WS_FLEET_SERVICE", undefined, text, "Name of the ECS service; the dimension of every metric."),
  clusterName: define("WS_FLEET_CLUSTER", undefined, text, "Name or ARN of the ECS cluster."),
  metricsUrl: define(
    "WS_FLEET_METRICS_URL",
    "",
    z.union([z.literal(""), httpUrl]),
    "Where metrics are posted instead of CloudWatch; set by the local runner.",
  ),
  runningTasksUrl: define(
    "WS_FLEET_RUNNING_TASKS_URL",
    "",
    z.union([z.literal(""), httpUrl]),
    "Where the number of running tasks is read instead of ECS; set by the local runner.",
  ),
  logLevel: define(
    "WS_FLEET_LOG_LEVEL",
    "info",
    z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(", ")}`),
    "Least severe level that is logged.",
  ),
} as const;

/** The worker's own limits. */
export const WORKER_DEFINITIONS = {
  targetConnections: define(
    "WS_FLEET_TARGET_CONNECTIONS",
    "700",
    integer(1, 100_000),
    "Connections per task that the service scales towards.",
  ),
  maxConnections: define("WS_FLEET_MAX_CONNECTIONS", "1000", integer(1, 100_000), "Hard cap of connections per task."),
  hintVisibilityMs: define(
    "WS_FLEET_HINT_VISIBILITY_MS",
    "3000",
    ms(1000, 43_200_000),
    "How long a received hint stays hidden; whole seconds.",
  ),
  longPollMs: define(
    "WS_FLEET_LONG_POLL_MS",
    "10000",
    ms(0, 20_000),
    "How long a poll for hints waits; whole seconds.",
  ),
  acquireBudgetMs: define("WS_FLEET_ACQUIRE_BUDGET_MS", "2500", ms(), "Limit of one acquire over all its attempts."),
  acquiresPerSecond: define(
    "WS_FLEET_ACQUIRES_PER_SECOND",
    "100",
    integer(1, 10_000),
    "Acquires a worker starts per second, on average.",
  ),
  dialsPerSecond: define("WS_FLEET_DIALS_PER_SECOND", "100", integer(1, 10_000), "Dials a worker starts per second."),
  maxConcurrentDials: define(
    "WS_FLEET_MAX_CONCURRENT_DIALS",
    "50",
    integer(1, 10_000),
    "Handshakes under way at once; one host has at most four fifths of them.",
  ),
  maxConcurrentLeaseOps: define(
    "WS_FLEET_MAX_CONCURRENT_LEASE_OPS",
    "64",
    integer(1, 1000),
    "Lease operations under way at once.",
  ),
  quietQueueMs: define(
    "WS_FLEET_QUIET_QUEUE_MS",
    "30000",
    ms(1000),
    "Without a hint for so long, a worker with free slots looks for orphans itself.",
  ),
  handshakeTimeoutMs: define("WS_FLEET_HANDSHAKE_TIMEOUT_MS", "5000", ms(), "Limit of one dial."),
  pingIntervalMs: define("WS_FLEET_PING_INTERVAL_MS", "20000", ms(), "Interval between own pings."),
  idleTimeoutMs: define(
    "WS_FLEET_IDLE_TIMEOUT_MS",
    "60000",
    ms(),
    "Nothing at all received for so long: the socket is dead and dialled anew.",
  ),
  maxMessageBytes: define(
    "WS_FLEET_MAX_MESSAGE_BYTES",
    "1048576",
    integer(1, 134_217_728),
    "Largest message; a larger one ends the socket with 1009.",
  ),
  unfinishedMaxBytes: define(
    "WS_FLEET_UNFINISHED_MAX_BYTES",
    "67108864",
    integer(1_048_576, 4_294_967_296),
    "Bytes of messages whose end has not come, of all sockets together; beyond it they end one by one.",
  ),
  reconnectBaseMs: define("WS_FLEET_RECONNECT_BASE_MS", "250", ms(), "First bound of the reconnect back-off."),
  reconnectCapMs: define("WS_FLEET_RECONNECT_CAP_MS", "10000", ms(), "Cap of the reconnect back-off."),
  connectGiveUpMs: define(
    "WS_FLEET_CONNECT_GIVE_UP_MS",
    "60000",
    ms(),
    "A connection that was not open for so long is parked, so that no lease stands for nothing.",
  ),
  parkBaseMs: define("WS_FLEET_PARK_BASE_MS", "15000", ms(), "First park; doubles with every failure in a row."),
  fatalParkMs: define("WS_FLEET_FATAL_PARK_MS", "900000", ms(), "Park after a refusal that no retry mends."),
  healthyMs: define("WS_FLEET_HEALTHY_MS", "60000", ms(), "Open for so long: the failure count starts again."),
  closeGraceMs: define(
    "WS_FLEET_CLOSE_GRACE_MS",
    "1000",
    ms(),
    "How long a close waits for the upstream's reply while frames on their way are still read.",
  ),
  stopTimeoutMs: define("WS_FLEET_STOP_TIMEOUT_MS", "120000", ms(), "SIGTERM to SIGKILL, as the task definition says."),
  drainBudgetMs: define("WS_FLEET_DRAIN_BUDGET_MS", "60000", ms(), "Limit of a drain before the process leaves."),
  writerMaxBytes: define(
    "WS_FLEET_WRITER_MAX_BYTES",
    "67108864",
    integer(1_048_576, 4_294_967_296),
    "Bytes of received, not yet stored messages at which sockets are paused.",
  ),
  writerMaxItems: define(
    "WS_FLEET_WRITER_MAX_ITEMS",
    "50000",
    integer(100, 10_000_000),
    "Received, not yet stored messages at which sockets are paused.",
  ),
  writerLingerMs: define("WS_FLEET_WRITER_LINGER_MS", "10", ms(0, 1000), "How long a batch waits to fill up."),
  writerConcurrency: define("WS_FLEET_WRITER_CONCURRENCY", "8", integer(1, 128), "Batch writes under way at once."),
  messageTtlSeconds: define(
    "WS_FLEET_MESSAGE_TTL_SECONDS",
    "2592000",
    integer(60, 315_360_000),
    "Age at which stored messages may be removed.",
  ),
  releasesPerSecond: define(
    "WS_FLEET_RELEASES_PER_SECOND",
    "300",
    integer(1, 10_000),
    "Leases of a dead task that are freed per second.",
  ),
  healthPort: define("WS_FLEET_HEALTH_PORT", "8080", integer(0, 65_535), "Port of the health endpoint, on loopback."),
  taskId: define("WS_FLEET_TASK_ID", "", z.string(), "Identity of the task; handed down by the supervisor."),
  journalFile: define(
    "WS_FLEET_JOURNAL_FILE",
    "",
    z.string(),
    "File to which ownership events are appended, for audits; none when empty.",
  ),
} as const;

export const DEFINITIONS = { ...TIMING_DEFINITIONS, ...PLACE_DEFINITIONS, ...WORKER_DEFINITIONS };
export type SettingName = keyof typeof DEFINITIONS;
export type SettingValue<N extends SettingName> = z.output<(typeof DEFINITIONS)[N]["schema"]>;
export type Settings<N extends SettingName> = { readonly [K in N]: SettingValue<K> };
