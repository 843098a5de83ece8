import { injectLambdaContext } from "@aws-lambda-powertools/logger/middleware";
import { CloudWatchClient } from "@aws-sdk/client-cloudwatch";
import { ECSClient } from "@aws-sdk/client-ecs";
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { dynamoDbClient, sqsClient } from "../shared/aws/clients.ts";
import { SystemClock, type Clock } from "../shared/clock.ts";
import { compileSettings, type Environment } from "../shared/config/compile.ts";
import type { SettingName, Settings } from "../shared/config/definitions.ts";
import { EcsRunningTasks, HttpRunningTasks, type RunningTasks } from "../shared/ecs/running-tasks.ts";
import type { LeaseTable } from "../shared/lease/index.ts";
import type { Logger } from "../shared/logger.ts";
import { CloudWatchSink } from "../shared/metrics/cloudwatch-sink.ts";
import { HttpSink } from "../shared/metrics/http-sink.ts";
import type { MetricSink } from "../shared/metrics/sink.ts";
import { SqsHintQueue, type HintQueue } from "./core/hint-queue.ts";
import { adaptLogger, powertoolsLogger } from "./logger.ts";

/**
 * Builds what the functions are handed. Called once per module, at cold start: a setting that is missing or impossible
 * fails the start of the function with a ConfigurationError that names it, and no invocation ever runs.
 */

const REQUEST_TIMEOUT_MS = 5_000;
/** Dead tasks are released at a few hundred writes a second, each a few milliseconds long. */
const MAX_SOCKETS = 64;

const COMMON = ["serviceName", "logLevel"] as const satisfies readonly SettingName[];
type CommonName = (typeof COMMON)[number];

export type Run<R> = (event: unknown, context: Context) => Promise<R>;

export interface Wiring<N extends SettingName> {
  readonly settings: Settings<N | CommonName>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The Lambda handler around a plain function, with the invocation's context on each log line. */
  readonly wrap: <R>(run: Run<R>) => Run<R>;
}

/** @throws {ConfigurationError} */
export function wire<N extends SettingName>(environment: Environment, names: readonly N[]): Wiring<N> {
  const settings = compileSettings<N | CommonName>(environment, [...COMMON, ...names]);
  const { serviceName, logLevel } = settings as Settings<CommonName>;
  const powertools = powertoolsLogger(serviceName, logLevel);
  return {
    settings,
    clock: new SystemClock(),
    logger: adaptLogger(powertools),
    wrap: <R>(run: Run<R>) => middy<unknown, R>(run).use(injectLambdaContext(powertools)),
  };
}

export function connectionsTable(settings: Settings<"connectionsTable" | "attemptTimeoutMs" | "attempts">): LeaseTable {
  const { attemptTimeoutMs, attempts, connectionsTable: tableName } = settings;
  return { client: dynamoDbClient({ attemptTimeoutMs, attempts, maxSockets: MAX_SOCKETS }), tableName };
}

export function hintQueue(settings: Settings<"hintQueueUrl" | "attemptTimeoutMs" | "attempts">): HintQueue {
  const { attemptTimeoutMs, attempts, hintQueueUrl } = settings;
  return new SqsHintQueue(sqsClient({ attemptTimeoutMs, attempts, maxSockets: MAX_SOCKETS }), hintQueueUrl);
}

/** CloudWatch, or the endpoint that the local runner names. */
export function metricSink(settings: Settings<"metricsUrl" | "serviceName">, source: string): MetricSink {
  const { metricsUrl, serviceName } = settings;
  return metricsUrl === ""
    ? new CloudWatchSink(new CloudWatchClient({ requestHandler: requestLimits() }), serviceName)
    : new HttpSink(metricsUrl, source, REQUEST_TIMEOUT_MS);
}

/** ECS, or the endpoint that the local runner names. */
export function runningTasks(settings: Settings<"runningTasksUrl" | "clusterName" | "serviceName">): RunningTasks {
  const { runningTasksUrl, clusterName, serviceName } = settings;
  return runningTasksUrl === ""
    ? new EcsRunningTasks(new ECSClient({ requestHandler: requestLimits() }), clusterName, serviceName)
    : new HttpRunningTasks(runningTasksUrl, REQUEST_TIMEOUT_MS);
}

function requestLimits() {
  return {
    requestTimeout: REQUEST_TIMEOUT_MS,
    throwOnRequestTimeout: true,
    connectionTimeout: REQUEST_TIMEOUT_MS,
    socketTimeout: REQUEST_TIMEOUT_MS,
  };
}
