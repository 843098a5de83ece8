import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { convertToNative } from "@aws-sdk/util-dynamodb";
import { MAX_EPOCH } from "../messages/row.ts";
import { CONNECTION, DESIRED_STATES, type DesiredState } from "./attributes.ts";
import {
  checkWsUrl,
  kindOf,
  parseSeq,
  upstreamSettingsSchema,
  type ConnectionKind,
  type UpstreamSettings,
} from "./upstream-settings.ts";

export type RawItem = Record<string, AttributeValue>;

/** A connection as every part of the fleet sees it: parsed, bounded and typed. */
export interface ConnectionItem {
  readonly connectionId: string;
  readonly desiredState: DesiredState;
  readonly wsUrl: string;
  readonly upstream: UpstreamSettings;
  readonly kind: ConnectionKind;
  readonly failureCount: number;
  /** Everything up to here is durably stored; undefined before the first checkpoint. */
  readonly lastSeq: bigint | undefined;
  readonly lastCursor: string | undefined;
}

/** The lease half of an item. It is parsed apart, since a lease must be judged even where the settings are broken. */
export interface LeaseView {
  readonly desiredState: string | undefined;
  readonly owner: string | undefined;
  /** undefined when missing or not a number: invisible to the orphan query until the audit mends it. */
  readonly expiresAtMs: number | undefined;
  readonly epoch: bigint | undefined;
}

/** An item that no worker can act on. `problems` name the field and the rule. */
export class MalformedItemError extends Error {
  override readonly name = "MalformedItemError";
  readonly connectionId: string;
  readonly problems: readonly string[];

  constructor(connectionId: string, problems: readonly string[]) {
    super(`connection ${JSON.stringify(connectionId)}: ${problems.join("; ")}`);
    this.connectionId = connectionId;
    this.problems = problems;
  }
}

/** Half of what DynamoDB takes as a partition key, so that the keys derived from an id fit as well. */
const MAX_ID_BYTES = 1024;

/** Why `id` cannot name a connection, or undefined when it can. */
export function checkConnectionId(id: unknown): string | undefined {
  if (typeof id !== "string" || id === "") return "connection_id must be a non-empty string";
  if (Buffer.byteLength(id) > MAX_ID_BYTES) return `connection_id must be at most ${MAX_ID_BYTES} bytes`;
  // Kept for the partitions derived from an id.
  if (id.includes("#")) return "connection_id must not contain '#'";
  // DynamoDB refuses a lone surrogate, and a control character is written as six: a hint would outgrow its limit.
  if (!id.isWellFormed() || /\p{Cc}/u.test(id)) return "connection_id must not contain control or broken characters";
  return undefined;
}

export function leaseOf(item: RawItem): LeaseView {
  const expires = item[CONNECTION.expiresAtMs]?.N;
  const epoch = item[CONNECTION.epoch]?.N;
  return {
    desiredState: item[CONNECTION.desiredState]?.S,
    owner: item[CONNECTION.owner]?.S,
    expiresAtMs: expires === undefined ? undefined : Number(expires),
    epoch: epoch === undefined ? undefined : parseSeq(epoch),
  };
}

/** @throws {MalformedItemError} naming every field that is wrong. */
export function parseConnectionItem(item: RawItem): ConnectionItem {
  const problems: string[] = [];
  const connectionId = item[CONNECTION.id]?.S ?? "";
  const idProblem = checkConnectionId(connectionId);
  if (idProblem !== undefined) problems.push(idProblem);

  const desiredState = DESIRED_STATES.find((state) => state === item[CONNECTION.desiredState]?.S);
  if (desiredState === undefined) problems.push("desired_state must be STARTED or STOPPED");

  const wsUrl = item[CONNECTION.wsUrl]?.S;
  if (wsUrl === undefined) problems.push("ws_url must be a string");
  else {
    const urlProblem = checkWsUrl(wsUrl);
    if (urlProblem !== undefined) problems.push(`ws_url ${urlProblem}`);
  }

  const upstream = parseUpstream(item[CONNECTION.upstream], problems);

  const lastSeqText = item[CONNECTION.lastSeq];
  const lastSeq = lastSeqText?.N === undefined ? undefined : parseSeq(lastSeqText.N);
  if (lastSeqText !== undefined && lastSeq === undefined) problems.push("last_seq must be a non-negative integer");

  const cursor = item[CONNECTION.lastCursor];
  if (cursor !== undefined && cursor.S === undefined) problems.push("last_cursor must be a string");

  // What is no number at all is the acquire's to refuse; of what it takes, the messages must have keys.
  const { epoch } = leaseOf(item);
  if (epoch !== undefined && epoch > MAX_EPOCH) problems.push(`lease_epoch must be at most ${MAX_EPOCH}`);

  const failures = Number(item[CONNECTION.failureCount]?.N ?? "0");

  if (problems.length > 0 || desiredState === undefined || wsUrl === undefined) {
    throw new MalformedItemError(connectionId, problems);
  }
  return {
    connectionId,
    desiredState,
    wsUrl,
    upstream,
    kind: kindOf(upstream),
    failureCount: Number.isSafeInteger(failures) && failures > 0 ? failures : 0,
    lastSeq,
    lastCursor: cursor?.S,
  };
}

function parseUpstream(value: AttributeValue | undefined, problems: string[]): UpstreamSettings {
  if (value === undefined) return {};
  const parsed = upstreamSettingsSchema.safeParse(plain(value));
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) {
    problems.push(`${["upstream", ...issue.path.map(String)].join(".")}: ${issue.message}`);
  }
  return {};
}

/** The settings as plain data; what cannot be such (a number beyond a double) becomes undefined and is refused by the schema. */
function plain(value: AttributeValue): unknown {
  // Not by the SDK: it would make the prototype of what is called `__proto__`, and inherited names would pass for settings.
  if (value.M !== undefined) {
    return Object.fromEntries(Object.entries(value.M).map(([name, member]) => [name, plain(member)]));
  }
  try {
    return convertToNative(value);
  } catch {
    return undefined;
  }
}
