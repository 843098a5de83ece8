import { AnchoredClock } from "../../../shared/clock.ts";
import { CONNECTION } from "../../../shared/connection/attributes.ts";
import type { LeaseTable } from "../../../shared/lease/index.ts";
import { silentLogger } from "../../../shared/logger.ts";
import type { HintQueue } from "../../../functions/core/hint-queue.ts";
import { hintStarted } from "../../../functions/core/hint-started.ts";
import { RecentHints } from "../../../functions/core/recent-hints.ts";
import { releaseDeadTask } from "../../../functions/core/release-dead-task.ts";
import { runRounds } from "../../../functions/core/rounds.ts";
import { sweep } from "../../../functions/core/sweep.ts";
import { parseTaskStateChange } from "../../../functions/core/task-state-change.ts";
import type { StreamRecord } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { Machine } from "../engine/machine.ts";
import { SimProcess } from "../engine/process.ts";
import type { Fleet } from "./fleet.ts";
import type { SimTask } from "./task.ts";

const MINUTE_MS = 60_000;
/** Timeout of the scheduled functions. */
const INVOCATION_MS = 65_000;
const ATTEMPTS_OF_A_RECORD = 5;
const CLUSTER = "arn:aws:ecs:us-east-1:000000000000:cluster/sim";
const SERVICE = "sim";

/** The functions' own code, invoked as Lambda does: by a schedule, by the table's stream, and by task events. */
export class ControlPlane {
  readonly #fleet: Fleet;
  readonly #process: SimProcess;
  readonly #table: LeaseTable;
  readonly #queue: HintQueue;
  readonly #recent = new RecentHints(10_000, 50_000);

  constructor(fleet: Fleet, offsetMs: number) {
    this.#fleet = fleet;
    const machine = new Machine(fleet.scheduler, { offsetMs, rate: 1, monotonicMs: 1000 });
    this.#process = new SimProcess("functions", fleet.scheduler, machine, fleet.seeded.fork("functions"));
    const client = fleet.store.client({
      process: this.#process,
      place: "functions",
      task: undefined,
      attempts: fleet.settings.attempts,
      attemptTimeoutMs: fleet.settings.attemptTimeoutMs,
    });
    this.#table = { client, tableName: fleet.settings.connectionsTable };
    this.#queue = fleet.queue.forFunctions(this.#process);
  }

  start(): void {
    this.#everyMinute(this.#fleet.seeded.between(0, 10_000));
  }

  /** A record of the table's stream; most of them never get past the event source's filter. */
  onRecord(record: StreamRecord): void {
    const image = record.dynamodb.NewImage;
    const expiry = image?.[CONNECTION.expiresAtMs];
    if (image?.[CONNECTION.desiredState]?.S !== "STARTED" || (expiry !== undefined && expiry.N !== "0")) return;
    const { scheduler, seeded, weather } = this.#fleet;
    const { off, repeated, latencyMs } = weather.stream;
    if (off) return;
    for (let copies = seeded.chance(repeated) ? 3 : 1; copies > 0; copies--) {
      scheduler.in(seeded.between(...latencyMs), () => this.#desiredState(record, ATTEMPTS_OF_A_RECORD));
    }
  }

  /** ECS tells of a stopped task some time later, sometimes twice. */
  onTaskStopped(task: SimTask): void {
    const { scheduler, seeded } = this.#fleet;
    const event = taskStateChange(task);
    for (let copies = seeded.chance(0.3) ? 2 : 1; copies > 0; copies--) {
      scheduler.in(seeded.between(10_000, 30_000), () => {
        if (this.#fleet.weather.functionsOff) return;
        void releaseDeadTask(
          { table: this.#table, clock: this.#process.clock, logger: silentLogger },
          {
            detail: parseTaskStateChange(event),
            ours: { cluster: CLUSTER, service: SERVICE },
            perSecond: this.#fleet.settings.releasesPerSecond,
            attempts: this.#fleet.settings.attempts,
            secondPassAfterMs: 1000,
          },
        ).catch(() => undefined);
      });
    }
  }

  #everyMinute(firstMs: number): void {
    const { scheduler } = this.#fleet;
    scheduler.in(firstMs, () => {
      this.#everyMinute(MINUTE_MS);
      if (!this.#fleet.weather.functionsOff) void this.#reconcile();
    });
  }

  async #reconcile(): Promise<void> {
    const { clock } = this.#process;
    const anchored = new AnchoredClock(clock);
    const startedMs = clock.monotonicMs();
    const { settings, weather } = this.#fleet;
    await runRounds(
      { clock, remainingMs: () => INVOCATION_MS - (clock.monotonicMs() - startedMs), logger: silentLogger },
      { name: "sweep", everyMs: settings.sweepMs },
      async (signal) => {
        if (weather.functionsOff) return;
        await sweep(
          {
            table: this.#table,
            queue: this.#queue,
            recent: this.#recent,
            nowMs: () => anchored.nowMs(),
            logger: silentLogger,
          },
          { skewMs: settings.skewMs, pageSize: 1000, maxHints: 10_000, inFlight: 8 },
          { signal },
        );
      },
    ).catch(() => undefined);
  }

  #desiredState(record: StreamRecord, attempts: number): void {
    const { scheduler, weather } = this.#fleet;
    const again = (): void => {
      if (attempts > 1) scheduler.in(1000, () => this.#desiredState(record, attempts - 1));
    };
    if (weather.functionsOff) {
      again();
      return;
    }
    hintStarted({ queue: this.#queue, nowMs: () => this.#process.clock.wallMs(), logger: silentLogger }, [record]).then(
      ({ failed }) => {
        if (failed.length > 0) again();
      },
      again,
    );
  }
}

function taskStateChange(task: SimTask): object {
  return {
    source: "aws.ecs",
    "detail-type": "ECS Task State Change",
    detail: {
      clusterArn: CLUSTER,
      taskArn: `arn:aws:ecs:us-east-1:000000000000:task/sim/${task.task}`,
      group: `service:${SERVICE}`,
      desiredStatus: "STOPPED",
      lastStatus: "STOPPED",
      containers: [
        {
          name: "worker",
          lastStatus: "STOPPED",
          ...(task.exitCode === undefined ? {} : { exitCode: task.exitCode }),
        },
      ],
    },
  };
}
