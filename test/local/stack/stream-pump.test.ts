import { ExpiredIteratorException } from "@aws-sdk/client-dynamodb-streams";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { StreamTrigger } from "../../../local/serverless/functions.ts";
import { type Shard, type StartAt, type StreamRecord } from "../../../local/triggers/stream-client.ts";
import { startStreamPump } from "../../../local/triggers/stream-pump.ts";
import { silentLogger } from "../../../shared/logger.ts";
import { ManualClock } from "./manual-clock.ts";

const trigger: StreamTrigger = {
  kind: "stream",
  tableLogicalId: "T",
  startingPosition: "LATEST",
  batchSize: 100,
  filterPatterns: [],
  reportBatchItemFailures: true,
  bisectBatchOnFunctionError: true,
  maximumRetryAttempts: 1,
  maximumRecordAgeMs: Infinity,
  onFailureQueueLogicalId: undefined,
};

interface ShardState {
  readonly parent?: string;
  closed: boolean;
  readonly records: StreamRecord[];
}

/**
 * A stream whose shards split, whose iterators expire and whose service fails: what the embedded server, with its one
 * shard, never does. Iterators are `shard:index`.
 */
class ScriptedStream {
  readonly shardStates = new Map<string, ShardState>();
  readonly iterators: string[] = [];
  /** Thrown by the next read instead of an answer. */
  nextFailure: Error | undefined;

  open(shardId: string, parent?: string): void {
    this.shardStates.set(shardId, { closed: false, records: [], ...(parent !== undefined && { parent }) });
  }

  write(shardId: string, ...numbers: string[]): void {
    for (const SequenceNumber of numbers) this.#state(shardId).records.push({ dynamodb: { SequenceNumber } });
  }

  shards(): Promise<Shard[]> {
    return Promise.resolve([...this.shardStates].map(([shardId, { parent }]) => ({ shardId, parentShardId: parent })));
  }

  iterator(_arn: string, shardId: string, start: StartAt): Promise<string> {
    const { records } = this.#state(shardId);
    this.iterators.push(`${shardId} ${start.type}${"sequenceNumber" in start ? ` ${start.sequenceNumber}` : ""}`);
    if (start.type === "TRIM_HORIZON") return Promise.resolve(`${shardId}:0`);
    if (start.type !== "AFTER_SEQUENCE_NUMBER") return Promise.resolve(`${shardId}:${records.length}`);
    const after = records.findIndex((record) => record.dynamodb.SequenceNumber === start.sequenceNumber);
    return Promise.resolve(`${shardId}:${after + 1}`);
  }

  records(iterator: string): Promise<{ records: StreamRecord[]; next: string | undefined }> {
    const failure = this.nextFailure;
    this.nextFailure = undefined;
    if (failure !== undefined) return Promise.reject(failure);
    const [shardId = "", from = "0"] = iterator.split(":");
    const { records, closed } = this.#state(shardId);
    return Promise.resolve({
      records: records.slice(Number(from)),
      next: closed ? undefined : `${shardId}:${records.length}`,
    });
  }

  #state(shardId: string): ShardState {
    const state = this.shardStates.get(shardId);
    assert.ok(state, shardId);
    return state;
  }
}

async function start(stream: ScriptedStream) {
  const clock = new ManualClock();
  const received: string[] = [];
  const pump = await startStreamPump({
    client: stream,
    streamArn: "arn",
    trigger,
    invoke: ({ Records }) => {
      received.push(...Records.map((record) => record.dynamodb.SequenceNumber));
      return Promise.resolve(null);
    },
    onGivenUp: () => Promise.reject(new Error("nothing is given up here")),
    clock,
    logger: silentLogger,
  });
  return { clock, received, pump };
}

describe("the reader of a stream", () => {
  it("reads a shard's successor from its beginning, after all of the shard itself", async () => {
    const stream = new ScriptedStream();
    stream.open("a");
    stream.write("a", "1");
    const { clock, received, pump } = await start(stream);
    stream.write("a", "2", "3");
    stream.open("b", "a");
    stream.write("b", "4");
    await clock.advance(5_000);
    assert.deepEqual(received, ["2", "3"], "the parent is still open, so its child waits");
    stream.write("a", "3.5");
    stream.shardStates.get("a")!.closed = true;
    await clock.advance(1_000);
    assert.deepEqual(received, ["2", "3", "3.5", "4"]);
    assert.deepEqual(stream.iterators, ["a LATEST", "b TRIM_HORIZON"]);
    await pump.stop();
    assert.equal(clock.pendingTimers, 0);
  });

  it("goes on after the last record when its iterator has expired", async () => {
    const stream = new ScriptedStream();
    stream.open("a");
    const { clock, received, pump } = await start(stream);
    stream.write("a", "1");
    await clock.advance(1_000);
    stream.nextFailure = new ExpiredIteratorException({ message: "as asked", $metadata: {} });
    stream.write("a", "2");
    await clock.advance(2_000);
    assert.deepEqual(received, ["1", "2"]);
    assert.deepEqual(stream.iterators, ["a LATEST", "a AFTER_SEQUENCE_NUMBER 1"]);
    await pump.stop();
  });

  it("keeps its place through a failure of the service: LATEST taken anew would skip what was written meanwhile", async () => {
    const stream = new ScriptedStream();
    stream.open("a");
    const { clock, received, pump } = await start(stream);
    stream.nextFailure = new Error("fetch failed");
    stream.write("a", "1");
    await clock.advance(2_000);
    assert.deepEqual(received, ["1"]);
    assert.deepEqual(stream.iterators, ["a LATEST"]);
    await pump.stop();
  });

  it("stops while an invocation hangs", async () => {
    const stream = new ScriptedStream();
    stream.open("a");
    const clock = new ManualClock();
    let invocations = 0;
    const pump = await startStreamPump({
      client: stream,
      streamArn: "arn",
      trigger,
      invoke: () => {
        invocations++;
        return new Promise(() => undefined);
      },
      onGivenUp: () => Promise.resolve(),
      clock,
      logger: silentLogger,
    });
    stream.write("a", "1");
    await clock.advance(1_000);
    assert.equal(invocations, 1);
    await pump.stop();
    assert.equal(clock.pendingTimers, 0);
  });
});
