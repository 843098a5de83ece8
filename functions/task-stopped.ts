import { releaseDeadTask } from "./core/release-dead-task.ts";
import { parseTaskStateChange } from "./core/task-state-change.ts";
import { connectionsTable, wire } from "./wiring.ts";

/** ECS Task State Change → the leases of a task that is proven dead are freed. */

const { settings, clock, logger, wrap } = wire(process.env, [
  "connectionsTable",
  "clusterName",
  "attemptTimeoutMs",
  "attempts",
  "releasesPerSecond",
]);

const SECOND_PASS_AFTER_MS = 1_000;

const table = connectionsTable(settings);
const request = {
  ours: { cluster: settings.clusterName, service: settings.serviceName },
  perSecond: settings.releasesPerSecond,
  attempts: settings.attempts,
  secondPassAfterMs: SECOND_PASS_AFTER_MS,
};

export const handler = wrap(async (event) => {
  await releaseDeadTask({ table, clock, logger }, { ...request, detail: parseTaskStateChange(event) });
});
