import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hintStarted } from "../../functions/core/hint-started.ts";
import { connection, ownedBy } from "./support/connections.ts";
import { recordingLogger } from "./support/log.ts";
import { streamRecord } from "./support/stream.ts";
import { stubQueue, type Answer } from "./support/stub-queue.ts";

function run(records: readonly unknown[], answer: (ids: readonly string[], call: number) => Answer = () => []) {
  const queue = stubQueue(answer);
  const logger = recordingLogger();
  return { queue, logger, result: hintStarted({ queue, nowMs: () => 1_767_000_000_000.5, logger }, records) };
}

const started = (id: string, sequenceNumber: string) => streamRecord(sequenceNumber, connection(id));

describe("hintStarted", () => {
  it("hints a connection once, however often it is in the batch", async () => {
    const { queue, result } = run([started("a", "1"), started("b", "2"), started("a", "3")]);
    assert.deepEqual(await result, { hinted: 2, skipped: 0, malformed: 0, failed: [] });
    assert.deepEqual(queue.calls, [["a", "b"]]);
  });

  it("reports the records whose hint was refused twice, and no others", async () => {
    const records = [
      started("a", "101"),
      streamRecord("102", connection("held", ownedBy("task", 1_767_000_020_000))),
      started("b", "103"),
      { poison: true },
      started("c", "104"),
      started("b", "105"),
    ];
    const { queue, logger, result } = run(records, (ids) => ids.filter((id) => id === "b"));
    assert.deepEqual(await result, { hinted: 2, skipped: 1, malformed: 1, failed: ["103", "105"] });
    assert.deepEqual(queue.calls, [["a", "b", "c"], ["b"]]);
    assert.ok(logger.lines.some(({ level, fields }) => level === "error" && fields["failed"] === 2));
  });

  it("reports nothing when the second try succeeds", async () => {
    const { result } = run([started("a", "1"), started("b", "2")], (ids, call) => (call === 0 ? ids : []));
    assert.deepEqual((await result).failed, []);
  });

  it("reports every record when the queue cannot be reached", async () => {
    const records = Array.from({ length: 100 }, (_, i) => started(`c-${i}`, String(1_000 + i)));
    const { logger, result } = run(records, () => new Error("connect ECONNREFUSED"));
    assert.deepEqual(
      [...(await result).failed].sort(),
      records.map((_, i) => String(1_000 + i)),
    );
    assert.ok(logger.lines.some(({ fields }) => fields["error"] === "connect ECONNREFUSED"));
  });

  it("never asks for a retry of a record of another shape, and bounds what it logs of them", async () => {
    const { queue, logger, result } = run(Array.from({ length: 500 }, () => ({ eventName: "INSERT" })));
    assert.deepEqual(await result, { hinted: 0, skipped: 0, malformed: 500, failed: [] });
    assert.deepEqual(queue.calls, []);
    const warnings = logger.lines.filter(({ level }) => level === "warn");
    assert.equal(warnings.length, 21);
    assert.match(String(warnings[0]?.fields["problem"]), /dynamodb: /);
    assert.equal(warnings.at(-1)?.fields["leftOut"], 480);
  });
});
