import { CloudWatchClient } from "@aws-sdk/client-cloudwatch";
import { dynamoDbClient, sqsClient } from "../shared/aws/clients.ts";
import { observeDates } from "../shared/aws/date-header.ts";
import { countUsage, type DynamoDbUsage } from "../shared/aws/usage.ts";
import { AnchoredClock, SystemClock } from "../shared/clock.ts";
import { ConfigurationError } from "../shared/config/compile.ts";
import { errorFields } from "../shared/logger.ts";
import { CloudWatchSink } from "../shared/metrics/cloudwatch-sink.ts";
import { HttpSink } from "../shared/metrics/http-sink.ts";
import type { MetricSink } from "../shared/metrics/sink.ts";
import { dialer } from "./connection/socket.ts";
import { EXIT } from "./exit-codes.ts";
import { taskIdentity } from "./identity.ts";
import { sqsHintQueue } from "./intake/hint-queue.ts";
import { ClockErrorBound } from "./lease/clock-error-bound.ts";
import { ClockGuard } from "./lease/clock-guard.ts";
import { FileJournal, noJournal } from "./lease/journal.ts";
import { workerSettings, type WorkerSettings } from "./settings.ts";
import { HealthServer } from "./telemetry/health.ts";
import { workerLogger } from "./telemetry/logger.ts";
import { CLOCK_PROBES, Worker } from "./worker.ts";

/** Usage counters go to the journal at this interval, so that a killed process has told nearly all of them. */
const USAGE_MS = 1000;

async function main(): Promise<void> {
  const settings = settingsOrExit();
  const owner = settings.taskId === "" ? await taskIdentity(process.env) : settings.taskId;
  const logger = workerLogger(settings.logLevel, owner);
  const clock = new SystemClock();
  const anchored = new AnchoredClock(clock);

  const { attempts, attemptTimeoutMs, maxConcurrentLeaseOps, writerConcurrency } = settings;
  const leaseClient = dynamoDbClient({ attempts, attemptTimeoutMs, maxSockets: maxConcurrentLeaseOps + 16 });
  const messageClient = dynamoDbClient({ attempts, attemptTimeoutMs: 5000, maxSockets: writerConcurrency });
  const pollTimeoutMs = settings.longPollMs + 5000;
  const poller = sqsClient({ attempts: 1, attemptTimeoutMs: pollTimeoutMs, maxSockets: 4 });
  const queueClient = sqsClient({ attempts, attemptTimeoutMs: 5000, maxSockets: 16 });

  const clockGuard = new ClockGuard(clock, {
    skewMs: settings.skewMs,
    windowMs: 60_000,
    minObservations: CLOCK_PROBES,
  });
  observeDates(
    leaseClient,
    () => anchored.nowMs(),
    (date) => clockGuard.observe(date),
  );
  const metadataUri = process.env["ECS_CONTAINER_METADATA_URI_V4"] ?? "";
  if (metadataUri !== "") {
    // Not waited for: a silent endpoint must not hold up the start.
    void new ClockErrorBound({ endpoint: metadataUri, clock, guard: clockGuard, logger, fetch }).start();
  }
  const leaseUsage = noUsage();
  const messageUsage = noUsage();
  countUsage(leaseClient, leaseUsage);
  countUsage(messageClient, messageUsage);

  const journal = settings.journalFile === "" ? undefined : new FileJournal(settings.journalFile, clock);

  const worker = new Worker({
    owner,
    settings,
    clock,
    anchored,
    random: Math.random,
    logger,
    leaseClient,
    messageClient,
    queue: sqsHintQueue(poller, queueClient, settings),
    dial: dialer(clock, settings),
    sink: metricSink(settings, owner),
    journal: journal ?? noJournal,
    clockGuard,
  });

  const recordUsage = (): void => {
    const { user, system } = process.cpuUsage();
    journal?.recordUsage({
      requests: leaseUsage.requests + messageUsage.requests,
      readUnits: leaseUsage.readUnits + messageUsage.readUnits,
      writeUnits: leaseUsage.writeUnits + messageUsage.writeUnits,
      leaseWriteUnits: leaseUsage.writeUnits,
      rssBytes: process.memoryUsage.rss(),
      cpuMs: (user + system) / 1000,
      oldestPendingMs: worker.oldestPendingMs(),
    });
  };
  const usageTimer = setInterval(recordUsage, USAGE_MS);

  const leave = (code: number): void => {
    clearInterval(usageTimer);
    recordUsage();
    process.exit(code);
  };
  const drain = (signal: string): void => {
    logger.info({ signal }, "asked to end");
    worker.drain().then(
      (clean) => leave(clean ? EXIT.ok : EXIT.leasesLeft),
      (error: unknown) => {
        logger.error(errorFields(error), "drain failed");
        leave(EXIT.leasesLeft);
      },
    );
  };
  process.on("SIGTERM", drain);
  process.on("SIGINT", drain);
  // Without its supervisor nobody would free this task's leases: it must not outlive it.
  process.on("disconnect", () => process.exit(EXIT.orphaned));
  // A process in an unknown state must not go on acting; its supervisor frees what it held.
  process.on("uncaughtException", (error) => {
    logger.error({ ...errorFields(error), stack: error.stack }, "uncaught exception");
    process.exit(EXIT.crashed);
  });

  const health = new HealthServer(() => worker.health());
  const port = await health.listen(settings.healthPort);
  logger.info({ health_port: port }, "worker starting");
  await worker.start();
  logger.info({ health_port: port, max_connections: settings.maxConnections }, "worker started");
}

function noUsage(): DynamoDbUsage {
  return { requests: 0, readUnits: 0, writeUnits: 0 };
}

function settingsOrExit(): WorkerSettings {
  try {
    return workerSettings(process.env);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    console.error(error.message);
    process.exit(EXIT.configuration);
  }
}

function metricSink(settings: WorkerSettings, owner: string): MetricSink {
  if (settings.metricsUrl !== "") return new HttpSink(settings.metricsUrl, owner, 2000);
  return new CloudWatchSink(
    new CloudWatchClient({
      maxAttempts: 2,
      requestHandler: {
        requestTimeout: 5000,
        throwOnRequestTimeout: true,
        connectionTimeout: 5000,
        socketTimeout: 5000,
      },
    }),
    settings.serviceName,
  );
}

main().catch((error: unknown) => {
  console.error("worker could not start:", error);
  process.exit(EXIT.crashed);
});
