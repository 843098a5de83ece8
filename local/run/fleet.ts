import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { stop as stopBundler } from "esbuild";
import { readFile } from "node:fs/promises";
import path from "node:path";
import type { Clock } from "../../shared/clock.ts";
import type { LeaseTable } from "../../shared/lease/index.ts";
import type { Logger } from "../../shared/logger.ts";
import { buildWorker } from "../../worker/build.ts";
import { startAgent } from "../ecs/agent.ts";
import { EcsService } from "../ecs/service.ts";
import { startLambda, type Lambda } from "../lambda.ts";
import { basicEnv } from "../stack/child-env.ts";
import { startStack, type Stack } from "../stack/stack.ts";
import { startTriggers, type Triggers } from "../triggers/triggers.ts";
import { Upstream } from "../upstream/client.ts";
import { startEndpoints } from "./endpoints.ts";
import type { RunFolder } from "./folder.ts";
import { LiveState } from "./live-state.ts";
import { MetricsBoard } from "./metrics-board.ts";
import { waitUntil } from "./wait.ts";

/** Where the processes of the fleet reach their servers, when it is not directly. */
export interface Detour {
  /** Laid over the environment of the functions. */
  readonly functionEnv: Readonly<Record<string, string>>;
  /** Laid over the environment of the task in this place. */
  taskEnv(slot: number): Readonly<Record<string, string>>;
  close(): Promise<void>;
}

export interface FleetOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** WS_FLEET_* settings of the user, for workers and functions alike. */
  readonly tuning: Readonly<Record<string, string>>;
  readonly folder: RunFolder;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly stream: boolean;
  readonly queue: boolean;
  readonly taskEvents: boolean;
  readonly eventDelayMs: number;
  /** Told when a part ends by itself that nothing can replace: the run is over then. */
  readonly onLost?: (what: string) => void;
  readonly detour?: (
    servers: { readonly stack: Stack; readonly upstream: Upstream } & Pick<FleetOptions, "logger" | "onLost">,
  ) => Promise<Detour>;
}

/** Everything that a deployment has, on this machine. */
export interface Fleet {
  readonly stack: Stack;
  readonly lambda: Lambda;
  readonly triggers: Triggers;
  readonly upstream: Upstream;
  readonly ecs: EcsService;
  readonly board: MetricsBoard;
  readonly live: LiveState;
  /** Of the runner as producer and auditor. */
  readonly table: LeaseTable;
  /** Ends everything at once; what still runs is killed. Repeatable. */
  close(): Promise<void>;
}

const PROJECT_ROOT = path.join(import.meta.dirname, "..", "..");
/** Fargate takes 20 s and more; here it only has to be later than the take-over by the others. */
const REPLACE_AFTER_MS = 3_000;
const STOP_TIMEOUT_MS = 120_000;
/** Often enough for the view's averages not to jump. */
const WORKER_METRICS_MS = 1_000;
/** Starting Node twice per task on a busy machine takes seconds; what needs longer will not come. */
const UP_LIMIT_MS = 60_000;

/** @throws when a part does not start; what had started is ended then. */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const { clock, env, folder, logger, onLost = () => undefined, tuning } = options;
  const closers: (() => Promise<void> | void)[] = [];
  const close = async (): Promise<void> => {
    for (let closer = closers.pop(); closer !== undefined; closer = closers.pop()) await closer();
  };
  try {
    const building = buildWorker(folder.bundles);
    // However the start ends, the bundler is done with the folder before anybody removes it; a failure is told below.
    closers.push(() => building.catch(() => undefined));
    const board = new MetricsBoard();
    const live = new LiveState();
    closers.push(() => live.close());
    const parts: { ecs?: EcsService } = {};
    const endpoints = await startEndpoints({
      taskMetadata: (taskId) => parts.ecs?.metadata(taskId),
      runningTasks: () => parts.ecs?.running.length ?? 0,
      board,
    });
    closers.push(() => endpoints.close());

    const upstream = await Upstream.start();
    closers.push(() => upstream.stop());
    upstream.onLost(onLost);
    const stack = await startStack({ projectRoot: PROJECT_ROOT, env, logger, withoutQueue: !options.queue, onLost });
    closers.push(() => stack.stop());
    const client = runnerClient(stack);
    closers.push(() => client.destroy());
    const detour = await options.detour?.({ stack, upstream, logger, onLost });
    if (detour !== undefined) closers.push(() => detour.close());

    const common = {
      ...tuning,
      WS_FLEET_METRICS_URL: endpoints.metricsUrl,
      WS_FLEET_RUNNING_TASKS_URL: endpoints.runningTasksUrl,
    };
    const { file, references } = stack;
    const lambda = await startLambda({
      file,
      references,
      env: { ...stack.env, ...common, ...detour?.functionEnv },
      logger,
    });
    closers.push(() => lambda.stop());
    const triggers = await startTriggers({
      file,
      lambda,
      stack,
      logger,
      withoutStream: !options.stream,
      withoutTaskEvents: !options.taskEvents,
    });
    closers.push(() => triggers.stop());

    await building;
    // Its process would idle beside the run.
    await stopBundler();
    const agent = await startAgent({ env: basicEnv(env), logger });
    closers.push(() => agent.stop());
    agent.onLost(onLost);
    const serviceName = stack.env["WS_FLEET_SERVICE"] ?? "";
    const ecs = new EcsService({
      agent,
      template: {
        region: stack.region,
        clusterName: stack.clusterName,
        clusterArn: stack.clusterArn,
        serviceName,
        family: `${serviceName}-worker`,
        revision: 1,
      },
      clock,
      logger,
      entry: path.join(folder.bundles, "supervisor.mjs"),
      envOf: (taskId) => {
        live.follow(taskId, folder.journal(taskId));
        const slot = parts.ecs?.running.find((task) => task.taskId === taskId)?.slot;
        return {
          ...stack.env,
          NODE_ENV: "production",
          WS_FLEET_LONG_POLL_MS: "1000",
          WS_FLEET_HINT_VISIBILITY_MS: "3000",
          WS_FLEET_METRICS_MS: String(WORKER_METRICS_MS),
          ...common,
          ...(slot === undefined ? {} : detour?.taskEnv(slot)),
          WS_FLEET_HEALTH_PORT: "0",
          WS_FLEET_JOURNAL_FILE: folder.journal(taskId),
          ECS_CONTAINER_METADATA_URI_V4: endpoints.metadataUri(taskId),
        };
      },
      logFileOf: (taskId) => folder.log(taskId),
      putEvent: (event) => void triggers.putEvent(event),
      eventDelayMs: options.eventDelayMs,
      replaceAfterMs: REPLACE_AFTER_MS,
      stopTimeoutMs: STOP_TIMEOUT_MS,
    });
    parts.ecs = ecs;
    closers.push(() => ecs.close());
    agent.onEnded(({ taskId }) => {
      live.poll();
      live.forget(taskId);
    });
    const table = { client, tableName: stack.connectionsTable };
    return { stack, lambda, triggers, upstream, ecs, board, live, table, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Whether every place of the service has a task whose worker is up. */
export function allUp({ board, ecs }: Pick<Fleet, "board" | "ecs">, workers: number): boolean {
  const up = ecs.running.filter(({ taskId, desiredStatus }) => desiredStatus === "RUNNING" && board.heardOf(taskId));
  return up.length >= workers;
}

/** Starts the tasks and waits until their workers are up. @throws with a worker's last words when that takes too long */
export async function startTasks(
  fleet: Fleet,
  workers: number,
  { clock, signal, folder }: { readonly clock: Clock; readonly signal: AbortSignal; readonly folder: RunFolder },
): Promise<void> {
  await fleet.ecs.scale(workers);
  const up = await waitUntil(() => allUp(fleet, workers) || fleet.ecs.ended.length > 0, {
    clock,
    signal,
    limitMs: UP_LIMIT_MS,
  });
  const [ended] = fleet.ecs.ended;
  if (up && ended === undefined) return;
  const task = ended?.task ?? fleet.ecs.running.find(({ taskId }) => !fleet.board.heardOf(taskId));
  const said = task === undefined ? "" : await lastWords(folder.log(task.taskId));
  throw new Error(
    ended === undefined
      ? `not every worker was up after ${UP_LIMIT_MS} ms\n${said}`
      : `a task ended while starting, with exit code ${ended.task.exitCode ?? "?"}\n${said}`,
  );
}

async function lastWords(logFile: string): Promise<string> {
  const text = await readFile(logFile, "utf8").catch(() => "");
  return text.trimEnd().split("\n").slice(-5).join("\n"); // prettier-ignore
}

function runnerClient(stack: Stack): DynamoDBClient {
  return new DynamoDBClient({
    endpoint: stack.dynamodbEndpoint,
    region: stack.region,
    ...(stack.credentials && { credentials: stack.credentials }),
    requestHandler: {
      requestTimeout: 10_000,
      throwOnRequestTimeout: true,
      httpAgent: { maxSockets: 32, keepAlive: true },
    },
  });
}
