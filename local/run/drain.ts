import type { Session } from "./session.ts";
import { waitUntil } from "./wait.ts";

/** A drain lasts seconds; a worker that needs longer than this is stuck. */
const LIMIT_MS = 90_000;

/**
 * Ends all tasks by SIGTERM, as a scale-in to nothing does.
 *
 * @returns whether every one ended in time, having given everything back
 */
export async function drainTasks({ fleet, clock }: Session): Promise<boolean> {
  const asked = new Set(fleet.ecs.running.map(({ taskId }) => taskId));
  await fleet.ecs.scale(0);
  // Not to be interrupted: this is what an interruption leads to.
  const { signal } = new AbortController();
  const ended = await waitUntil(() => fleet.ecs.running.length === 0, { clock, signal, limitMs: LIMIT_MS });
  fleet.live.poll();
  return ended && fleet.ecs.ended.every(({ task }) => !asked.has(task.taskId) || task.exitCode === 0);
}
