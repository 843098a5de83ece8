import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sendHints } from "../../functions/core/send-hints.ts";
import type { Hint } from "../../shared/hints/hint.ts";
import { stubQueue } from "./support/stub-queue.ts";

const hintsOf = (ids: readonly string[]): Hint[] =>
  ids.map((connectionId) => ({ connectionId, reason: "orphaned", hintedAtMs: 1 }));
const idsOf = (hints: readonly Hint[]) => hints.map((hint) => hint.connectionId);
const numbered = (count: number) => Array.from({ length: count }, (_, i) => `c-${i}`);

describe("sendHints", () => {
  it("sends batches of ten in the order given, several at once", async () => {
    const queue = stubQueue(() => []);
    const ids = numbered(45);
    const { sent, unsent, error } = await sendHints(queue, hintsOf(ids), 3);
    assert.deepEqual(
      queue.calls.map((call) => call.length),
      [10, 10, 10, 10, 5],
    );
    assert.deepEqual(queue.calls.flat(), ids);
    assert.equal(queue.mostAtOnce, 3);
    assert.deepEqual(idsOf(sent).sort(), [...ids].sort());
    assert.deepEqual(unsent, []);
    assert.equal(error, undefined);
  });

  it("makes no call without hints", async () => {
    const queue = stubQueue(() => []);
    assert.deepEqual(await sendHints(queue, [], 3), { sent: [], unsent: [], error: undefined });
    assert.deepEqual(queue.calls, []);
  });

  it("sends refused entries once more, and only them", async () => {
    const queue = stubQueue((_, call) => (call === 0 ? ["c-1", "c-2"] : []));
    const { sent, unsent } = await sendHints(queue, hintsOf(numbered(4)), 2);
    assert.deepEqual(queue.calls, [numbered(4), ["c-1", "c-2"]]);
    assert.deepEqual(idsOf(sent).sort(), numbered(4));
    assert.deepEqual(unsent, []);
  });

  it("gives up entries that are refused twice, and goes on with the other batches", async () => {
    const queue = stubQueue((ids) => ids.filter((id) => id === "c-3"));
    const { sent, unsent, error } = await sendHints(queue, hintsOf(numbered(25)), 1);
    assert.deepEqual(idsOf(unsent), ["c-3"]);
    assert.equal(sent.length, 24);
    assert.equal(error, undefined);
  });

  it("repeats a call that fails as a whole", async () => {
    const queue = stubQueue((_, call) => (call === 0 ? new Error("throttled") : []));
    const { sent, unsent } = await sendHints(queue, hintsOf(numbered(3)), 1);
    assert.deepEqual(queue.calls, [numbered(3), numbered(3)]);
    assert.deepEqual(idsOf(sent), numbered(3));
    assert.deepEqual(unsent, []);
  });

  it("stops calling a queue that fails as a whole twice, and reports everything unsent", async () => {
    const down = new Error("connect ECONNREFUSED");
    const queue = stubQueue(() => down);
    const { sent, unsent, error } = await sendHints(queue, hintsOf(numbered(500)), 2);
    assert.equal(queue.calls.length, 4, "two lines, two tries each");
    assert.deepEqual(sent, []);
    assert.deepEqual(idsOf(unsent).sort(), numbered(500).sort());
    assert.equal(error, down);
  });

  it("sends nothing once its time is up", async () => {
    const queue = stubQueue(() => []);
    const { sent, unsent } = await sendHints(queue, hintsOf(numbered(30)), 2, { signal: AbortSignal.abort() });
    assert.deepEqual(queue.calls, []);
    assert.deepEqual(sent, []);
    assert.deepEqual(idsOf(unsent), numbered(30));
  });
});
