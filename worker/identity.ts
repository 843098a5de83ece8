import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { z } from "zod";

const taskSchema = z.object({
  TaskARN: z.string().regex(/^arn:[^/]+(\/[^/]+)*\/[A-Za-z0-9_-]+$/, "must be a task ARN"),
});

const METADATA_TIMEOUT_MS = 2000;
const METADATA_ATTEMPTS = 5;

/**
 * The lease owner's name. Within ECS (and the local runner) the task id from the task metadata endpoint, so that whoever
 * sees the task die can name its leases; elsewhere a name that no other process ever has.
 *
 * @throws when the endpoint is announced but gives no task: a made-up name could never be matched with a dead task.
 */
export async function taskIdentity(environment: Readonly<Record<string, string | undefined>>): Promise<string> {
  const endpoint = environment["ECS_CONTAINER_METADATA_URI_V4"];
  if (endpoint === undefined || endpoint === "") {
    return `${hostname()}-${process.pid}-${randomBytes(6).toString("hex")}`;
  }
  let failure: unknown;
  for (let attempt = 0; attempt < METADATA_ATTEMPTS; attempt++) {
    try {
      const response = await fetch(`${endpoint}/task`, { signal: AbortSignal.timeout(METADATA_TIMEOUT_MS) });
      const { TaskARN } = taskSchema.parse(await response.json());
      return TaskARN.slice(TaskARN.lastIndexOf("/") + 1);
    } catch (error) {
      failure = error;
      await new Promise((resolve) => setTimeout(resolve, 100 * 2 ** attempt));
    }
  }
  throw new Error(`task metadata endpoint ${endpoint}/task gives no task`, { cause: failure });
}
