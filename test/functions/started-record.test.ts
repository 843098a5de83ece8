import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { judgeRecord } from "../../functions/core/started-record.ts";
import { connection, ownedBy, STOPPED } from "./support/connections.ts";
import { streamRecord } from "./support/stream.ts";

const NUMBER = "111000000000000000000001";
const free = connection("c-1");

function problemOf(record: unknown): string {
  const verdict = judgeRecord(record);
  if (verdict.kind !== "malformed") assert.fail(`expected a problem, got ${JSON.stringify(verdict)}`);
  return verdict.problem;
}

/** The record with another value at a path inside it; undefined takes the field away. */
function altered(path: readonly string[], value: unknown): unknown {
  const record = streamRecord(NUMBER, free);
  let at = record;
  for (const key of path.slice(0, -1)) {
    at[key] = { ...(at[key] as Record<string, unknown>) };
    at = at[key] as Record<string, unknown>;
  }
  at[path.at(-1)!] = value;
  return JSON.parse(JSON.stringify(record));
}

describe("judgeRecord", () => {
  const startable: [string, unknown][] = [
    ["an expiry of 0", streamRecord(NUMBER, free)],
    ["no expiry at all", streamRecord(NUMBER, connection("c-1", { lease_expires_at_ms: undefined }))],
    ["an insert", streamRecord(NUMBER, free, { eventName: "INSERT" })],
    [
      "fields that nobody knows yet",
      streamRecord(NUMBER, { ...free, tomorrow: { BOOL: true } }, { userIdentity: null }),
    ],
  ];
  for (const [what, record] of startable) {
    it(`takes a STARTED connection without owner: ${what}`, () => {
      assert.deepEqual(judgeRecord(record), { kind: "started", connectionId: "c-1", sequenceNumber: NUMBER });
    });
  }

  const others: [string, unknown][] = [
    ["a heartbeat or an acquire", streamRecord(NUMBER, { ...free, ...ownedBy("task", 1_767_000_020_000) })],
    ["an owner with expiry 0", streamRecord(NUMBER, { ...free, lease_owner: { S: "task" } })],
    [
      "an owner without expiry",
      streamRecord(NUMBER, connection("c-1", { lease_expires_at_ms: undefined, lease_owner: { S: "t" } })),
    ],
    ["a park", streamRecord(NUMBER, { ...free, lease_expires_at_ms: { N: "1767000060000" } })],
    ["a stop", streamRecord(NUMBER, { ...free, ...STOPPED })],
    ["an item without a state", streamRecord(NUMBER, connection("c-1", { desired_state: undefined }))],
    ["a deletion", streamRecord(NUMBER, undefined)],
    ["a deletion that carries an image", streamRecord(NUMBER, free, { eventName: "REMOVE" })],
  ];
  for (const [what, record] of others) {
    it(`passes over ${what}`, () => assert.deepEqual(judgeRecord(record), { kind: "other" }));
  }

  const malformed: [readonly string[], unknown, RegExp][] = [
    [["dynamodb"], undefined, /^dynamodb: /],
    [["dynamodb", "SequenceNumber"], undefined, /^dynamodb\.SequenceNumber: /],
    [["dynamodb", "NewImage"], undefined, /^dynamodb\.NewImage: must be present/],
    [["dynamodb", "NewImage", "connection_id"], undefined, /^dynamodb\.NewImage\.connection_id: /],
    [["dynamodb", "NewImage", "connection_id"], { N: "7" }, /^dynamodb\.NewImage\.connection_id\.S: /],
    [["dynamodb", "NewImage", "connection_id", "S"], "", /must be a non-empty string/],
    [["dynamodb", "NewImage", "connection_id", "S"], "a#b", /must not contain '#'/],
    [["dynamodb", "NewImage", "connection_id", "S"], "x".repeat(1025), /at most 1024 bytes/],
    [["dynamodb", "NewImage", "desired_state"], { N: "1" }, /^dynamodb\.NewImage\.desired_state\.S: /],
    [["dynamodb", "NewImage", "lease_expires_at_ms"], { S: "0" }, /^dynamodb\.NewImage\.lease_expires_at_ms\.N: /],
    [["dynamodb", "NewImage", "lease_owner"], { NULL: true }, /^dynamodb\.NewImage\.lease_owner\.S: /],
    [["eventName"], "TRUNCATE", /^eventName: /],
  ];
  for (const [path, value, problem] of malformed) {
    it(`names field and rule of ${path.join(".")} = ${JSON.stringify(value ?? null).slice(0, 40)}`, () => {
      assert.match(problemOf(altered(path, value)), problem);
    });
  }

  it("takes anything at all without throwing", () => {
    for (const record of [null, undefined, 7, "text", [], {}, { dynamodb: null }]) assert.ok(problemOf(record) !== "");
  });
});
