import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { RETRY_BASE_MS } from "../../../worker/messages/limits.ts";
import type { Fault } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { bench, claimOf, Counts, makeWriter, pushAll, row, seeded, SETTINGS, Told } from "./support.ts";

const OUTAGES: Fault[] = [
  { kind: "throttle" },
  { kind: "server-error" },
  { kind: "credentials" },
  { kind: "credentials", name: "ExpiredTokenException" },
  { kind: "apply-then-error" },
  { kind: "delayed-apply", applyAfterMs: 40 },
];

describe("retries", () => {
  for (const fault of OUTAGES) {
    it(`go on for as long as it takes: ${JSON.stringify(fault)}`, async () => {
      let broken = true;
      const { clock, lane, counts, requests, stored, writer } = bench({
        random: seeded(5),
        faults: () => (broken ? fault : undefined),
      });
      const lanes = Array.from({ length: 6 }, () => lane());
      lanes.forEach(({ lane: one }, i) => pushAll(one, `c${i}`, 1, 40));
      await clock.advance(600_000);
      assert.equal(writer.pendingItems, 240, "nothing is given up");
      assert.ok(
        lanes.every(({ lane: one }) => claimOf(one) === undefined),
        "nothing is claimed",
      );
      const tried = requests.length;
      assert.ok(tried > 300, "ten minutes of retries has a back-off of a few seconds at most");
      assert.ok(tried < 10_000, "the retries back off");
      assert.ok(counts.of("MessageWriteRetries") >= tried - SETTINGS.concurrency);
      broken = false;
      await clock.advance(20_000);
      assert.equal(stored().size, 240);
      assert.equal(writer.pendingItems, 0);
      assert.equal(counts.of("MessagesStored"), 240);
      assert.ok(lanes.every(({ lane: one, told }) => claimOf(one) === 40n && told.refused.length === 0));
      assert.equal(clock.pendingTimers, 0);
    });
  }

  it("leave it visible for how long the oldest row has been waiting", async () => {
    let broken = true;
    const { clock, lane, writer } = bench({ faults: () => (broken ? { kind: "throttle" } : undefined) });
    assert.equal(writer.oldestPendingMs, 0);
    const one = lane().lane;
    pushAll(one, "a", 1, 1);
    await clock.advance(4000);
    pushAll(one, "a", 2, 2);
    await clock.advance(1000);
    assert.equal(writer.oldestPendingMs, 5000);
    broken = false;
    await clock.advance(20_000);
    assert.equal(writer.pendingItems, 0);
    assert.equal(writer.oldestPendingMs, 0);
  });

  it("send only what was left unprocessed, until nothing is", async () => {
    const random = seeded(11);
    const { clock, lane, counts, requests, stored } = bench({
      random,
      faults: (call) => {
        const left = Array.from({ length: 25 }, () => random() < 0.5);
        return call.n <= 12 ? { kind: "unprocessed", select: (index) => left[index] === true } : undefined;
      },
    });
    const lanes = Array.from({ length: 10 }, () => lane().lane);
    lanes.forEach((one, i) => pushAll(one, `c${i}`, 1, 20));
    await clock.advance(60_000);
    assert.equal(stored().size, 200);
    assert.equal(requests.flat().length - 200, counts.of("MessageWriteRetries"), "each repetition is counted");
    assert.ok(counts.of("MessageWriteRetries") > 20);
    assert.equal(counts.of("MessagesStored"), 200);
    for (const one of lanes) assert.equal(claimOf(one), 20n);
  });

  it("of one hot partition do not hold up other lanes", async () => {
    const { clock, db, lane, requests, stored } = bench();
    const inner = db.faults!;
    db.faults = (call) => {
      inner(call);
      const keys = requests.at(-1)!;
      const hot = (index: number): boolean => keys[index]!.startsWith("hot/");
      return keys.some((_, index) => hot(index)) ? { kind: "unprocessed", select: hot } : undefined;
    };
    const hot = lane().lane;
    pushAll(hot, "hot", 1, 400);
    await clock.advance(5000);
    for (let second = 0; second < 20; second++) {
      const quiet = lane().lane;
      pushAll(quiet, `quiet${second}`, 1, 30);
      await clock.advance(100);
      assert.equal(claimOf(quiet), 30n, "a quiet lane waits for the hot one");
    }
    assert.equal(hot.pendingItems, 400);
    db.faults = undefined;
    await clock.advance(20_000);
    assert.equal(claimOf(hot), 400n);
    assert.equal(stored().size, 1000);
  });

  it("do not count a row as written when the answer names an item nobody sent", async () => {
    let n = 0;
    const { clock, db, stored } = bench({
      faults: () => (n++ === 0 ? { kind: "unprocessed", select: (i) => i === 1 } : undefined),
    });
    const client = db.client();
    const original = client.send.bind(client) as (command: unknown) => Promise<object>;
    // The answer is garbled on its way: the key of the item that was left is not one of ours.
    const garbled = {
      send: async (command: unknown) => {
        const output = await original(command);
        const text = JSON.stringify(output).replaceAll('"connection_id":{"S":"a"}', '"connection_id":{"S":"z"}');
        return JSON.parse(text) as object;
      },
    };
    const writer = makeWriter({ client: garbled as unknown as DynamoDBClient, clock, counts: new Counts() });
    const one = writer.lane(new Told());
    pushAll(one, "a", 1, 3);
    await clock.advance(SETTINGS.lingerMs);
    assert.equal(claimOf(one), undefined);
    await clock.advance(10_000);
    assert.equal(claimOf(one), 3n);
    assert.equal(stored().size, 3);
  });

  it("start with short pauses again after a success", async () => {
    let fault: Fault | undefined = { kind: "throttle" };
    const { clock, lane } = bench({ faults: () => fault });
    const { lane: one } = lane();
    one.push(row("a", 1));
    await clock.advance(120_000);
    fault = undefined;
    await clock.advance(10_000);
    assert.equal(claimOf(one), 1n);
    fault = { kind: "throttle" };
    one.push(row("a", 2));
    await clock.advance(SETTINGS.lingerMs);
    fault = undefined;
    await clock.advance(RETRY_BASE_MS + SETTINGS.lingerMs);
    assert.equal(claimOf(one), 2n);
  });

  it("give a lane that rested no more turns than others", async () => {
    const { clock, db, lane, requests } = bench({ settings: { concurrency: 1 } });
    const inner = db.faults!;
    db.faults = (call) => {
      inner(call);
      return call.n === 1 ? { kind: "unprocessed", select: (index) => index === 0 } : { kind: "delay", ms: 100 };
    };
    const lanes = Array.from({ length: 60 }, () => lane().lane);
    // The first lane's rest ends while it still has a place in the round.
    for (let seq = 1; seq <= 8; seq++) lanes.forEach((one, i) => one.push(row(`c${i}`, seq)));
    await clock.advance(1000);
    const turns = requests.slice(2, 8).flat();
    assert.equal(turns.length, 150);
    const rested = turns.filter((key) => key.startsWith("c0/")).length;
    assert.ok(rested >= 2 && rested <= 3, `${rested} turns of 150 for one of 60 lanes`);
  });

  it("keep new rows flowing while old ones wait", async () => {
    const { clock, db, lane } = bench();
    const { lane: one } = lane();
    let n = 0;
    const inner = db.faults!;
    db.faults = (call) => {
      inner(call);
      return ++n === 1 ? { kind: "delay", ms: 10_000 } : undefined;
    };
    pushAll(one, "a", 1, 25);
    await clock.settle();
    pushAll(one, "a", 26, 100);
    await clock.advance(5000);
    assert.equal(one.pendingItems, 25);
    assert.equal(claimOf(one), undefined, "76 durable rows behind a gap are not claimed");
    await clock.advance(5000);
    assert.equal(claimOf(one), 100n);
    one.push(row("a", 101));
    await clock.advance(SETTINGS.lingerMs);
    assert.equal(claimOf(one), 101n);
  });
});
