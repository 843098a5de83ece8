import { QueryCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { sleep, type Clock } from "../clock.ts";
import { BY_OWNER_INDEX, CONNECTION } from "../connection/attributes.ts";
import { failed, isConditionFailure } from "./classify.ts";
import { sendOptions, type CallOptions, type LeaseTable } from "./context.ts";
import { FREE_NOW_MS } from "./release.ts";

export interface ReleaseOfRequest {
  /** A task whose process is proven dead: nothing of it can act any more, though a last write may still arrive. */
  readonly deadTask: string;
  /** Releases started per second, so that a dead task's leases do not crowd out the living tasks' renewals. */
  readonly perSecond: number;
  /** Retries of a single release before it is left to expire. */
  readonly attempts: number;
}

export interface ReleasedOf {
  readonly released: number;
  /** Already taken, freed or deleted by somebody else. */
  readonly skipped: number;
  /** Nobody could say; these leases expire by themselves. */
  readonly failed: number;
}

export interface ReleaseOfDeps {
  readonly table: LeaseTable;
  readonly clock: Clock;
}

/**
 * Frees every lease that `by_owner` shows for a dead task. Repeatable: each release is conditional on the base item still
 * naming the dead task, so running it twice, or late, or beside the sweep, changes nothing.
 *
 * @throws what the SDK throws when the index itself cannot be read.
 */
export async function releaseOf(
  deps: ReleaseOfDeps,
  request: ReleaseOfRequest,
  options?: CallOptions,
): Promise<ReleasedOf> {
  const { table, clock } = deps;
  const counts = { released: 0, skipped: 0, failed: 0 };
  const inFlight = new Set<Promise<void>>();
  const startedAtMs = clock.monotonicMs();
  let started = 0;
  for await (const connectionId of heldBy(table, request.deadTask, options)) {
    const dueMs = startedAtMs + (started / request.perSecond) * 1000 - clock.monotonicMs();
    // Timers have a grain of about a millisecond: only a real lead is slept off, so the pace holds on average.
    if (dueMs > 2) await sleep(clock, dueMs, options?.signal);
    if (options?.signal?.aborted === true) break;
    started++;
    const one = releaseOne(deps, connectionId, request, options).then((result) => {
      counts[result]++;
      inFlight.delete(one);
    });
    inFlight.add(one);
  }
  await Promise.all(inFlight);
  return counts;
}

async function* heldBy(table: LeaseTable, owner: string, options?: CallOptions): AsyncGenerator<string> {
  let start: Record<string, never> | undefined;
  do {
    const page = await table.client.send(
      new QueryCommand({
        TableName: table.tableName,
        IndexName: BY_OWNER_INDEX,
        KeyConditionExpression: "lease_owner = :owner",
        ExpressionAttributeValues: { ":owner": { S: owner } },
        ...(start === undefined ? {} : { ExclusiveStartKey: start }),
      }),
      sendOptions(options),
    );
    for (const item of page.Items ?? []) {
      const id = item[CONNECTION.id]?.S;
      if (id !== undefined) yield id;
    }
    start = page.LastEvaluatedKey as Record<string, never> | undefined;
  } while (start !== undefined);
}

async function releaseOne(
  { table, clock }: ReleaseOfDeps,
  connectionId: string,
  request: ReleaseOfRequest,
  options?: CallOptions,
): Promise<keyof ReleasedOf> {
  for (let attempt = 1; ; attempt++) {
    try {
      await table.client.send(
        new UpdateItemCommand({
          TableName: table.tableName,
          Key: { [CONNECTION.id]: { S: connectionId } },
          ConditionExpression: "lease_owner = :deadTask",
          UpdateExpression: "SET lease_expires_at_ms = :free REMOVE lease_owner",
          ExpressionAttributeValues: { ":deadTask": { S: request.deadTask }, ":free": { N: String(FREE_NOW_MS) } },
          ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        }),
        sendOptions(options),
      );
      return "released";
    } catch (error) {
      if (isConditionFailure(error)) return "skipped";
      if (attempt >= request.attempts || failed(error).reason === "credentials") return "failed";
      await sleep(clock, 50 * 2 ** attempt, options?.signal);
    }
  }
}
