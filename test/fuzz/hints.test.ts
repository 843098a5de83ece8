import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { encodeHint } from "../../shared/hints/hint.ts";
import { VirtualWorker } from "../worker/support/virtual-worker.ts";
import { text } from "./support/attributes.ts";

const ID = "c";
const SOUND = { v: 1, connection_id: ID, reason: "orphaned", hinted_at_ms: 0 };

/** One field of a sound hint replaced by what it must not be. */
const spoilt = fc.constantFrom("v", "connection_id", "reason", "hinted_at_ms", "free_since_ms").chain((field) =>
  fc
    .oneof(fc.constantFrom<unknown>(null, -1, 1.5, 1e300, true, [], {}, "#", "", "a#b", "\u0000"), fc.jsonValue())
    .filter((value) => !allowed(field, value))
    .map((value) => JSON.stringify({ ...SOUND, [field]: value })),
);

/** Values that the field may have, told apart from the parser under test. */
function allowed(field: string, value: unknown): boolean {
  switch (field) {
    case "v":
      return value === 1;
    case "reason":
      return value === "started" || value === "orphaned";
    case "connection_id":
      return (
        typeof value === "string" &&
        value !== "" &&
        Buffer.byteLength(value) <= 1024 &&
        !value.includes("#") &&
        !/[\p{Cc}\p{Cs}]/u.test(value)
      );
    default:
      return Number.isSafeInteger(value) && (value as number) >= 0;
  }
}

/** Bodies that no worker can read, whatever they resemble. */
const unreadable: fc.Arbitrary<string> = fc.oneof(
  spoilt,
  text.filter((body) => !body.startsWith("{")),
  fc
    .jsonValue()
    .filter((value) => typeof value !== "object" || value === null || Array.isArray(value))
    .map((value) => JSON.stringify(value)),
  fc.constantFrom("", "{}", "[]", "null", "{", `{"__proto__":${JSON.stringify(SOUND)}}`, "[".repeat(4000)),
  // Sound JSON, longer than any hint.
  fc.constant(JSON.stringify({ ...SOUND, padding: "x".repeat(5000) })),
  fc
    .nat({ max: 20 })
    .map((cut) => encodeHint({ connectionId: ID, reason: "orphaned", hintedAtMs: 1 }).slice(0, 30 + cut)),
);

/** Sound hints with fields that a later version may add. */
const readable = fc
  .dictionary(
    fc.string().filter((name) => !(name in SOUND) && name !== "free_since_ms"),
    fc.jsonValue(),
    {
      maxKeys: 3,
      noNullPrototype: true,
    },
  )
  .map((more) => JSON.stringify({ ...SOUND, ...more }))
  .filter((body) => body.length <= 4096);

describe("hints of any content", () => {
  it("that no worker can read each go to the dead-letter queue once; the others are acted on", () =>
    fc.assert(
      fc.asyncProperty(fc.array(unreadable, { maxLength: 30 }), readable, fc.nat(30), async (bodies, good, at) => {
        const one = new VirtualWorker();
        await one.worker.start();
        await one.put(ID);
        const all: readonly string[] = bodies.toSpliced(at, 0, good);
        one.queue.visible.push(...all.map((body, n) => ({ body, receiptHandle: `h${n}` })));
        await one.clock.advanceUntil(() => one.worker.health()["connections"] === 1, 12_000);
        // Past the time at which a hint that was not deleted would come back.
        await one.clock.advance(12_000);
        assert.deepEqual(one.queue.dead.toSorted(), bodies.toSorted());
        assert.deepEqual(one.queue.visible, []);
        assert.equal(one.lease(ID).owner, "me");
        assert.deepEqual(
          one.logger.lines.filter(({ level }) => level === "error"),
          [],
        );
      }),
      { numRuns: 60 },
    ));
});
