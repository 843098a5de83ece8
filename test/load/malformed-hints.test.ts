import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VirtualWorker } from "../worker/support/virtual-worker.ts";
import { malformedBody } from "./support/malformed-body.ts";

describe("hints that nobody can read", () => {
  it("do not use up the acquires of those behind them", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    await one.put("behind");
    const before = Array.from({ length: 1000 }, (_, n) => ({ body: malformedBody(n), receiptHandle: `m${n}` }));
    one.queue.visible.push(...before);
    one.queue.hint("behind");
    // A thousand acquires would take ten seconds.
    await one.clock.advanceUntil(() => one.lease("behind").owner === "me", 2000);
    assert.equal(one.queue.dead.length, before.length);
  });

  it("are no more at once than acquires could be, when the dead-letter queue does not answer", async () => {
    const one = new VirtualWorker();
    let waiting = 0;
    one.queue.sendToDlq = () => {
      waiting++;
      return new Promise<never>(() => undefined);
    };
    one.queue.visible.push(
      ...Array.from({ length: 5000 }, (_, n) => ({ body: malformedBody(n), receiptHandle: `m${n}` })),
    );
    await one.worker.start();
    await one.clock.advance(2000);
    assert.ok(waiting > 0 && waiting <= 50 + 2 * 100, `${waiting} under way`);
  });
});
