import { CreateTableCommand, DeleteItemCommand, PutItemCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { LiveAudit } from "../../../local/run/live-audit.ts";
import { silentLogger } from "../../../shared/logger.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import { startDynamo, type LocalDynamo } from "../helpers/dynoxide.ts";
import { range, transcriptOf } from "../helpers/rows.ts";
import { until } from "../stack/until.ts";

const transcript = transcriptOf("replay");
const { connectionId } = transcript;

describe("the live audit", () => {
  let dynamo: LocalDynamo;
  before(async () => {
    dynamo = await startDynamo();
    const id = { AttributeName: "connection_id", AttributeType: "S", KeyType: "HASH" } as const;
    const seq = { AttributeName: "seq", AttributeType: "N", KeyType: "RANGE" } as const;
    for (const [TableName, keys] of [
      ["connections", [id]],
      ["messages", [id, seq]],
    ] as const) {
      await dynamo.dynamodb.send(
        new CreateTableCommand({
          TableName,
          BillingMode: "PAY_PER_REQUEST",
          AttributeDefinitions: keys.map(({ AttributeName, AttributeType }) => ({ AttributeName, AttributeType })),
          KeySchema: keys.map(({ AttributeName, KeyType }) => ({ AttributeName, KeyType })),
        }),
      );
    }
  });
  after(() => dynamo.stop());

  const key = (segment: number) => ({
    connection_id: { S: connectionId },
    seq: { N: transcript.positionAt(segment).toString() },
  });
  const store = async (segments: readonly number[], payloadOf = (at: number) => transcript.payloadAt(at)) => {
    for (const segment of segments) {
      const Item = { ...key(segment), payload: { S: payloadOf(segment) } };
      await dynamo.dynamodb.send(new PutItemCommand({ TableName: "messages", Item }));
    }
  };
  const durable = (segment: number) =>
    dynamo.dynamodb.send(
      new UpdateItemCommand({
        TableName: "connections",
        Key: { connection_id: { S: connectionId } },
        UpdateExpression: "SET last_seq = :seq",
        ExpressionAttributeValues: { ":seq": { N: transcript.positionAt(segment).toString() } },
      }),
    );

  it("counts each durable segment once, and those that are not in the table", async (t) => {
    const clock = new VirtualClock({ settleTurns: 1 });
    const audit = new LiveAudit({
      dynamodb: dynamo.dynamodb,
      connectionsTable: "connections",
      messagesTable: "messages",
      transcripts: [transcript, transcriptOf("live")],
      clock,
      logger: silentLogger,
    });
    t.after(() => audit.stop());
    const untilChecked = (count: number) =>
      until(`${count} segments to be looked at`, async () => {
        await clock.advance(250);
        return audit.result.checked === count;
      });
    audit.start();
    await store(range(0, 10));
    await clock.advance(1_000);
    assert.deepEqual(audit.result, { lost: 0, checked: 0 }, "nothing was called durable yet");
    await durable(6);
    await untilChecked(7);
    assert.deepEqual(audit.result, { lost: 0, checked: 7 }, "what comes behind is not durable yet");

    await dynamo.dynamodb.send(new DeleteItemCommand({ TableName: "messages", Key: key(8) }));
    await store([9], () => "something else");
    await store(range(10, 12));
    await durable(11);
    await untilChecked(12);
    assert.deepEqual(audit.result, { lost: 2, checked: 12 });
  });
});
