/** What a view shows of a running fleet at one moment. */
export interface Snapshot {
  /** Since the run began, ms. */
  readonly elapsedMs: number;
  /** What the run is doing now. */
  readonly phase: string;
  readonly workers: readonly WorkerSnapshot[];
  readonly started: number;
  readonly open: number;
  /** Started, and held by nobody. */
  readonly orphans: number;
  readonly sent: number;
  readonly stored: number;
  /** Averages over the last seconds. */
  readonly sentPerSecond: number;
  readonly storedPerSecond: number;
  /** Durable positions under which something is not in the table, of those looked at; undefined: not looked at yet. */
  readonly lost: number | undefined;
  readonly checked: number;
  readonly faults: readonly FaultSnapshot[];
}

export interface WorkerSnapshot {
  readonly slot: number;
  readonly taskId: string;
  /** As ECS tells it, or FROZEN. */
  readonly status: string;
  readonly held: number;
  readonly open: number;
  readonly restarts: number;
}

export interface FaultSnapshot {
  readonly kind: string;
  readonly slot: number;
  readonly held: number;
  readonly recovered: number;
  /** Slowest so far. */
  readonly slowestMs: number;
}
