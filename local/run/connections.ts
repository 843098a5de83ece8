import { sleep, type Clock } from "../../shared/clock.ts";
import { start, stop, type LeaseTable, type StartRequest } from "../../shared/lease/index.ts";
import type { Upstream } from "../upstream/client.ts";
import type { Transcript } from "../upstream/transcript.ts";
import { InterruptedError } from "./wait.ts";

export interface PaceDeps {
  readonly table: LeaseTable;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Requests under way at once. */
const IN_FLIGHT = 16;

/** How a producer asks for the connection that speaks this transcript. */
export function startRequest(upstream: Pick<Upstream, "wsUrl">, { connectionId, kind }: Transcript): StartRequest {
  const wsUrl = upstream.wsUrl(kind, connectionId);
  return kind === "live"
    ? { connectionId, wsUrl }
    : { connectionId, wsUrl, upstream: { position: { pointer: "/seq", kind: "sequence" } } };
}

/**
 * STARTs connections at an even pace.
 *
 * @returns when each write was sent, host clock milliseconds
 * @throws when a write is refused or its outcome stays unknown
 */
export async function startAll(
  deps: PaceDeps,
  requests: readonly StartRequest[],
  perSecond: number,
): Promise<Map<string, number>> {
  const sentAtMs = new Map<string, number>();
  await paced(deps, requests, perSecond, async (request) => {
    sentAtMs.set(request.connectionId, deps.clock.monotonicMs());
    const outcome = await start(deps.table, request);
    if (outcome.kind === "kind-change") throw new Error(`${request.connectionId}: its feed was of another kind before`);
    if (outcome.kind === "unknown")
      throw new Error(`START of ${request.connectionId} failed`, { cause: outcome.error });
  });
  return sentAtMs;
}

/**
 * STOPs connections at an even pace.
 *
 * @returns when each write was confirmed, host clock milliseconds
 * @throws when a connection is gone or a write's outcome stays unknown
 */
export async function stopAll(
  deps: PaceDeps,
  connectionIds: readonly string[],
  perSecond: number,
): Promise<Map<string, number>> {
  const stoppedAtMs = new Map<string, number>();
  await paced(deps, connectionIds, perSecond, async (connectionId) => {
    const outcome = await stop(deps.table, connectionId);
    if (outcome.kind !== "held") throw new Error(`STOP of ${connectionId} failed (${outcome.kind})`);
    stoppedAtMs.set(connectionId, deps.clock.monotonicMs());
  });
  return stoppedAtMs;
}

async function paced<T>(
  { clock, signal }: PaceDeps,
  items: readonly T[],
  perSecond: number,
  act: (item: T) => Promise<void>,
): Promise<void> {
  const startedAtMs = clock.monotonicMs();
  let next = 0;
  const lane = async (): Promise<void> => {
    for (;;) {
      const at = next++;
      const item = items[at];
      if (item === undefined) return;
      const waitMs = startedAtMs + (at * 1000) / perSecond - clock.monotonicMs();
      if (waitMs > 0) await sleep(clock, waitMs, signal);
      if (signal.aborted) throw new InterruptedError("interrupted");
      await act(item);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
}
