import assert from "node:assert/strict";
import path from "node:path";
import { describe, it } from "node:test";
import { readServerlessFile } from "../../../local/serverless-file.ts";
import { BY_OWNER_INDEX, BY_STATE_INDEX, CONNECTION } from "../../../shared/connection/attributes.ts";
import { MESSAGE } from "../../../shared/messages/row.ts";

const { tables } = readServerlessFile({ projectRoot: path.join(import.meta.dirname, "../../..") });
const table = (logicalId: string) => tables.find((candidate) => candidate.logicalId === logicalId)!;
const hash = (AttributeName: string) => ({ AttributeName, KeyType: "HASH" });
const rangeKey = (AttributeName: string) => ({ AttributeName, KeyType: "RANGE" });

describe("tables of serverless.yml and the attribute names of the code", () => {
  it("connections: key, indexes, projections and stream", () => {
    const { createInput } = table("ConnectionsTable");
    assert.deepEqual(createInput.KeySchema, [hash(CONNECTION.id)]);
    assert.deepEqual(createInput.GlobalSecondaryIndexes, [
      {
        IndexName: BY_STATE_INDEX,
        KeySchema: [hash(CONNECTION.desiredState), rangeKey(CONNECTION.expiresAtMs)],
        Projection: { ProjectionType: "INCLUDE", NonKeyAttributes: [CONNECTION.owner] },
      },
      {
        IndexName: BY_OWNER_INDEX,
        KeySchema: [hash(CONNECTION.owner)],
        Projection: { ProjectionType: "KEYS_ONLY" },
      },
    ]);
    assert.deepEqual(
      Object.fromEntries(createInput.AttributeDefinitions!.map((d) => [d.AttributeName, d.AttributeType])),
      { [CONNECTION.id]: "S", [CONNECTION.desiredState]: "S", [CONNECTION.expiresAtMs]: "N", [CONNECTION.owner]: "S" },
    );
    assert.deepEqual(createInput.StreamSpecification, { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" });
    // A connection is what somebody asked for: it never expires by itself.
    assert.equal(table("ConnectionsTable").timeToLiveAttribute, undefined);
  });

  it("messages: key and expiry", () => {
    const { createInput, timeToLiveAttribute } = table("MessagesTable");
    assert.deepEqual(createInput.KeySchema, [hash(MESSAGE.connectionId), rangeKey(MESSAGE.seq)]);
    assert.deepEqual(
      Object.fromEntries(createInput.AttributeDefinitions!.map((d) => [d.AttributeName, d.AttributeType])),
      { [MESSAGE.connectionId]: "S", [MESSAGE.seq]: "N" },
    );
    assert.equal(timeToLiveAttribute, MESSAGE.expiresAt);
  });
});
