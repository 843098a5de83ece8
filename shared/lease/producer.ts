import { DeleteItemCommand, UpdateItemCommand, type AttributeValue } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { CONNECTION } from "../connection/attributes.ts";
import {
  checkConnectionId,
  leaseOf,
  MalformedItemError,
  parseConnectionItem,
  type RawItem,
} from "../connection/item.ts";
import { kindOf, type UpstreamSettings } from "../connection/upstream-settings.ts";
import { failed, isConditionFailure } from "./classify.ts";
import { sendOptions, type CallOptions, type LeaseTable } from "./context.ts";
import { held, lost, type Held, type Lost, type Outcome, type Unknown } from "./outcome.ts";

export interface StartRequest {
  readonly connectionId: string;
  readonly wsUrl: string;
  readonly upstream?: UpstreamSettings;
}

/** A change from a positioned to an unpositioned feed, or back: the keys of what is stored would change their meaning. */
export interface KindChange {
  readonly kind: "kind-change";
  readonly item: RawItem;
}

/** Two writes race a worker that takes or frees the lease between them; a few rounds always settle it. */
const START_ROUNDS = 8;

/**
 * Asks for a connection. Creates the item with expiry 0, or un-parks a free one; a held one keeps its lease and its
 * holder sees the new settings at its next heartbeat.
 *
 * @throws {MalformedItemError} when the request itself could never be acted on.
 */
export async function start(
  table: LeaseTable,
  request: StartRequest,
  options?: CallOptions,
): Promise<Held<undefined> | KindChange | Unknown> {
  const upstream = request.upstream ?? {};
  const settings = {
    [CONNECTION.wsUrl]: { S: request.wsUrl },
    [CONNECTION.upstream]: { M: marshall(upstream, { removeUndefinedValues: true }) },
  };
  // The producer is refused what every worker would refuse.
  parseConnectionItem({
    [CONNECTION.id]: { S: request.connectionId },
    [CONNECTION.desiredState]: { S: "STARTED" },
    ...settings,
  });

  for (let round = 1; ; round++) {
    const free = round % 2 === 1;
    try {
      await table.client.send(
        new UpdateItemCommand({
          TableName: table.tableName,
          Key: idKey(request.connectionId),
          ConditionExpression: `${free ? "attribute_not_exists(lease_owner)" : "attribute_exists(lease_owner)"} AND ${sameKind(upstream)}`,
          UpdateExpression:
            "SET desired_state = :started, ws_url = :wsUrl, upstream = :upstream" +
            (free ? ", lease_expires_at_ms = :zero, failure_count = :zero REMOVE last_error" : ""),
          ExpressionAttributeNames: { "#position": "position", "#kind": "kind" },
          ExpressionAttributeValues: {
            ":started": { S: "STARTED" },
            ":wsUrl": settings[CONNECTION.wsUrl] as AttributeValue,
            ":upstream": settings[CONNECTION.upstream] as AttributeValue,
            ":sequence": { S: "sequence" },
            ...(free ? { ":zero": { N: "0" } } : {}),
          },
          ReturnValuesOnConditionCheckFailure: "ALL_OLD",
        }),
        sendOptions(options),
      );
      return held(undefined);
    } catch (error) {
      if (!isConditionFailure(error)) return failed(error);
      if (error.Item !== undefined && kindChanges(error.Item, upstream))
        return { kind: "kind-change", item: error.Item };
      if (round >= START_ROUNDS) return failed(error);
    }
  }
}

/** True for a new item too: there is nothing stored whose meaning could change. */
function sameKind(upstream: UpstreamSettings): string {
  return kindOf(upstream) === "positioned"
    ? "(attribute_not_exists(desired_state) OR upstream.#position.#kind = :sequence)"
    : "(attribute_not_exists(desired_state) OR attribute_not_exists(upstream.#position.#kind) OR " +
        "upstream.#position.#kind <> :sequence)";
}

function kindChanges(item: RawItem, upstream: UpstreamSettings): boolean {
  const stored = item[CONNECTION.upstream]?.M?.["position"]?.M?.["kind"]?.S === "sequence";
  return item[CONNECTION.desiredState] !== undefined && stored !== (kindOf(upstream) === "positioned");
}

/**
 * Asks for a connection to end. State only: the holder sees it at its next heartbeat and releases.
 *
 * @throws {MalformedItemError} when the id cannot name a connection.
 */
export async function stop(
  table: LeaseTable,
  connectionId: string,
  options?: CallOptions,
): Promise<Outcome<undefined>> {
  const key = idKey(connectionId);
  try {
    await table.client.send(
      new UpdateItemCommand({
        TableName: table.tableName,
        Key: key,
        ConditionExpression: "attribute_exists(connection_id)",
        UpdateExpression: "SET desired_state = :stopped",
        ExpressionAttributeValues: { ":stopped": { S: "STOPPED" } },
      }),
      sendOptions(options),
    );
    return held(undefined);
  } catch (error) {
    return isConditionFailure(error) ? lost("gone") : failed(error);
  }
}

export interface DeleteRequest {
  readonly connectionId: string;
  /** Wall time, ms since the Unix epoch. */
  readonly nowMs: number;
  /** A lease counts as ended only so long after its expiry. */
  readonly skewMs: number;
}

/**
 * Removes a connection that is stopped and that nobody holds; a lease that its dead owner let expire does not stand in the
 * way, since nobody acquires a stopped connection to free it. A connection that is already gone is success.
 *
 * @throws {MalformedItemError} when the id could never name a connection.
 */
export async function deleteConnection(
  table: LeaseTable,
  request: DeleteRequest,
  options?: CallOptions,
): Promise<Held<undefined> | Lost | Unknown> {
  const key = idKey(request.connectionId);
  try {
    await table.client.send(
      new DeleteItemCommand({
        TableName: table.tableName,
        Key: key,
        ConditionExpression:
          "desired_state = :stopped AND (attribute_not_exists(lease_owner) OR lease_expires_at_ms < :ended)",
        ExpressionAttributeValues: {
          ":stopped": { S: "STOPPED" },
          ":ended": { N: String(request.nowMs - request.skewMs) },
        },
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
      sendOptions(options),
    );
    return held(undefined);
  } catch (error) {
    if (!isConditionFailure(error)) return failed(error);
    if (error.Item === undefined) return held(undefined);
    return lost(leaseOf(error.Item).desiredState === "STOPPED" ? "owned" : "started", error.Item);
  }
}

function idKey(connectionId: string): Record<string, AttributeValue> {
  const problem = checkConnectionId(connectionId);
  if (problem !== undefined) throw new MalformedItemError(connectionId, [problem]);
  return { [CONNECTION.id]: { S: connectionId } };
}
