import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "../../../shared/logger.ts";
import { deliverBatch, type DeliveryDeps, type GivenUp } from "../../../local/triggers/batch-delivery.ts";
import { resumeIndex } from "../../../local/triggers/batch-response.ts";
import type { StreamRecord } from "../../../local/triggers/stream-client.ts";
import { ManualClock } from "./manual-clock.ts";

const NOW_MS = 1_800_000_000_000;

function records(count: number, createdAtMs = NOW_MS): StreamRecord[] {
  return Array.from({ length: count }, (_, i) => ({
    dynamodb: { SequenceNumber: String(i + 1), ApproximateCreationDateTime: createdAtMs / 1000 },
  }));
}

const numbersOf = (batch: readonly StreamRecord[]): string => batch.map((one) => one.dynamodb.SequenceNumber).join(",");
const failed = (...numbers: string[]): object => ({
  batchItemFailures: numbers.map((itemIdentifier) => ({ itemIdentifier })),
});

/** Delivers 1..count to `answer` over virtual time and tells what was invoked and what was given up. */
async function play(
  count: number,
  answer: (batch: string, call: number) => unknown,
  trigger: Partial<DeliveryDeps["trigger"]> = {},
  createdAtMs = NOW_MS,
) {
  const clock = new ManualClock(NOW_MS);
  const calls: string[] = [];
  const given: GivenUp[] = [];
  const stats = { invocations: 0, failedInvocations: 0, recordsDone: 0, recordsGivenUp: 0 };
  const deps: DeliveryDeps = {
    trigger: {
      reportBatchItemFailures: true,
      bisectBatchOnFunctionError: false,
      maximumRetryAttempts: 2,
      maximumRecordAgeMs: Infinity,
      ...trigger,
    },
    invoke: ({ Records }) => {
      calls.push(numbersOf(Records));
      return Promise.resolve().then(() => answer(numbersOf(Records), calls.length));
    },
    giveUp: (one) => {
      given.push(one);
      return Promise.resolve();
    },
    clock,
    logger: silentLogger,
    stats,
  };
  const done = deliverBatch(deps, records(count, createdAtMs), new AbortController().signal);
  await clock.advance(3_600_000);
  await done;
  return { calls, given: given.map((one) => `${one.condition} ${numbersOf(one.records)}`), stats };
}

describe("delivery of a batch", () => {
  it("invokes once when all went well", async () => {
    const { calls, stats } = await play(3, () => failed());
    assert.deepEqual(calls, ["1,2,3"]);
    assert.equal(stats.recordsDone, 3);
  });

  it("goes on from the lowest sequence number that was reported", async () => {
    const { calls, stats } = await play(5, (_, call) => (call === 1 ? failed("4", "3") : null));
    assert.deepEqual(calls, ["1,2,3,4,5", "3,4,5"]);
    assert.deepEqual(stats, { invocations: 2, failedInvocations: 1, recordsDone: 5, recordsGivenUp: 0 });
  });

  it("repeats the whole batch when an id is not of the batch", async () => {
    const { calls } = await play(2, (_, call) => (call === 1 ? failed("2", "77") : null));
    assert.deepEqual(calls, ["1,2", "1,2"]);
  });

  it("repeats the whole batch after an error, no oftener than allowed, and then gives it up", async () => {
    const { calls, given, stats } = await play(2, () => Promise.reject(new Error("as asked")));
    assert.deepEqual(calls, ["1,2", "1,2", "1,2"]);
    assert.deepEqual(given, ["RetryAttemptsExhausted 1,2"]);
    assert.equal(stats.recordsGivenUp, 2);
  });

  it("halves a failing batch, so that the poison goes alone", async () => {
    const poison = (batch: string): unknown => {
      if (batch.split(",").includes("3")) throw new Error("as asked");
      return null;
    };
    const { calls, given, stats } = await play(4, poison, {
      bisectBatchOnFunctionError: true,
      maximumRetryAttempts: 1,
    });
    assert.deepEqual(calls, ["1,2,3,4", "1,2", "3,4", "3", "3", "4"], "halving counts as no retry");
    assert.deepEqual(given, ["RetryAttemptsExhausted 3"]);
    assert.equal(stats.recordsDone, 3);
  });

  it("keeps the order: nothing overtakes a record that is repeated", async () => {
    const { calls } = await play(3, (batch, call) =>
      batch.startsWith("2") && call < 4 ? failed("2") : call === 1 ? failed("2") : null,
    );
    assert.deepEqual(calls, ["1,2,3", "2,3", "2,3", "2,3"]);
  });

  it("gives up records that are too old, without invoking", async () => {
    const { calls, given } = await play(2, () => null, { maximumRecordAgeMs: 60_000 }, NOW_MS - 120_000);
    assert.deepEqual(calls, []);
    assert.deepEqual(given, ["RecordAgeExceeded 1,2"]);
  });

  it("gives up records that become too old while they are repeated", async () => {
    const { given } = await play(1, () => failed("1"), { maximumRecordAgeMs: 60_000, maximumRetryAttempts: Infinity });
    assert.deepEqual(given, ["RecordAgeExceeded 1"]);
  });

  it("does not look at the answer where reporting is off", async () => {
    const { calls } = await play(2, () => failed("1"), { reportBatchItemFailures: false });
    assert.deepEqual(calls, ["1,2"]);
  });
});

describe("the answer of a function", () => {
  const numbers = ["1", "2", "3"];
  const cases: [what: string, answer: unknown, resume: number][] = [
    ["nothing", undefined, 3],
    ["null", null, 3],
    ["an empty object", {}, 3],
    ["no list", { batchItemFailures: null }, 3],
    ["an empty list", failed(), 3],
    ["the second", failed("2"), 1],
    ["an empty id", failed(""), 0],
    ["a wrong key", { batchItemFailures: [{ sequenceNumber: "2" }] }, 0],
    ["no object in the list", { batchItemFailures: ["2"] }, 0],
    ["text", "ok", 0],
  ];
  for (const [what, answer, resume] of cases) {
    it(`${what} means: go on from ${resume}`, () => assert.equal(resumeIndex(answer, numbers), resume));
  }
});
