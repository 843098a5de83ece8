import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "../../../shared/logger.ts";
import { OrphanFinder } from "../../../worker/intake/orphan-finder.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";
import { Intake, type IntakeOptions } from "../support/intake.ts";
import { seeded } from "../support/seeded.ts";

const QUIET_MS = 30_000;
const LONGEST_QUIET_MS = QUIET_MS * 1.2;

interface Finding {
  readonly intake: Intake<VirtualClock>;
  readonly finder: OrphanFinder;
  /** When the index was asked, ms. */
  readonly queriesAtMs: number[];
  /** Ids whose acquire was sent, in order. */
  readonly acquired: string[];
}

async function finding(orphans: number, options: IntakeOptions = {}): Promise<Finding> {
  const intake = new Intake(new VirtualClock(), options);
  const { acquirer, anchored, clock, connections, db, random, table, tokens } = intake;
  await intake.seed(Array.from({ length: orphans }, (_, n) => `c-${String(n).padStart(4, "0")}`));
  const queriesAtMs: number[] = [];
  const acquired: string[] = [];
  db.faults = ({ operation, input }) => {
    if (operation === "Query") queriesAtMs.push(clock.monotonicMs());
    const { Key, UpdateExpression = "" } = input as {
      Key?: { connection_id: { S: string } };
      UpdateExpression?: string;
    };
    if (UpdateExpression.includes("if_not_exists(lease_epoch") && Key !== undefined) acquired.push(Key.connection_id.S);
    return undefined;
  };
  const finder = new OrphanFinder({
    table,
    acquirer,
    connections,
    tokens,
    clock,
    anchored,
    random,
    logger: silentLogger,
    settings: { quietQueueMs: QUIET_MS, skewMs: 1000 },
  });
  finder.start();
  return { intake, finder, queriesAtMs, acquired };
}

describe("the worker's own look for orphans", () => {
  it("comes only after the queue was quiet for long, at a moment of its own", async () => {
    const moments = [];
    for (let seed = 1; seed <= 8; seed++) {
      const { intake, queriesAtMs } = await finding(3, { random: seeded(seed) });
      await intake.clock.advance(QUIET_MS * 0.8 - 1);
      assert.deepEqual(queriesAtMs, []);
      await intake.clock.advance(LONGEST_QUIET_MS);
      assert.equal(intake.connections.size, 3);
      moments.push(queriesAtMs[0]);
    }
    assert.ok(new Set(moments).size > 4, "workers do not look in step");
  });

  it("is put off by hints of the sweep, but not for ever: one hint does not prove that all orphans are hinted", async () => {
    const { intake, finder, queriesAtMs } = await finding(3);
    const hintedFor = async (ms: number): Promise<void> => {
      for (let waited = 0; waited < ms; waited += QUIET_MS * 0.5) {
        await intake.clock.advance(QUIET_MS * 0.5);
        finder.onSweepHint();
      }
    };
    await hintedFor(QUIET_MS * 2);
    assert.deepEqual(queriesAtMs, []);
    await hintedFor(LONGEST_QUIET_MS);
    assert.ok(queriesAtMs.length >= 1);
    assert.equal(intake.connections.size, 3);
  });

  it("is not blind behind rows that nobody can take, however many and old they are", async () => {
    const { intake } = await finding(1, { maxConnections: 2 });
    for (let n = 0; n < 12; n++)
      await intake.seed(`poison${n}`, { lease_epoch: { S: "x" }, lease_expires_at_ms: { N: "-1" } });
    await intake.clock.advanceUntil(() => intake.connections.size === 1, 4 * LONGEST_QUIET_MS);
  });

  it("takes no more than there are slots, and spends tokens on no more", async () => {
    const { intake, acquired } = await finding(40, { maxConnections: 3, tokensPerSecond: 1, burst: 20 });
    await intake.clock.advanceUntil(() => acquired.length > 0, LONGEST_QUIET_MS);
    await intake.clock.settle();
    assert.equal(intake.connections.size, 3);
    assert.equal(acquired.length, 3);
    assert.equal(intake.tokens.available(), 17);
  });

  it("does not even ask at capacity, and asks again when there is a slot", async () => {
    const { intake, queriesAtMs } = await finding(2, { maxConnections: 1 });
    await intake.acquirer.tryAcquire("c-0000");
    await intake.clock.advance(5 * QUIET_MS);
    assert.deepEqual(queriesAtMs, []);
    for (const socket of intake.dial.sockets) socket.terminate();
    await intake.connections.get("c-0000")?.drain();
    await intake.clock.advance(LONGEST_QUIET_MS);
    assert.equal(intake.connections.size, 1);
  });

  it("takes them in another order on every worker", async () => {
    const orders = [];
    for (const seed of [1, 2]) {
      const { intake, acquired } = await finding(30, { maxConnections: 30, random: seeded(seed) });
      await intake.clock.advance(LONGEST_QUIET_MS);
      assert.equal(acquired.length, 30);
      orders.push(acquired);
    }
    assert.notDeepEqual(orders[0], orders[1]);
    assert.notDeepEqual(orders[0], [...orders[0]!].sort());
  });

  it("is slowed down by the tokens that hints use too", async () => {
    const { intake, acquired } = await finding(30, { maxConnections: 30, tokensPerSecond: 2, burst: 4 });
    await intake.clock.advanceUntil(() => acquired.length > 0, LONGEST_QUIET_MS);
    const burst = acquired.length;
    await intake.clock.advance(5000);
    assert.equal(burst, 4);
    assert.ok(Math.abs(acquired.length - 14) <= 1, `${acquired.length}`);
  });

  it("comes again soon while there is something to find, and rarely otherwise", async () => {
    const { intake, queriesAtMs } = await finding(8, { maxConnections: 100 });
    await intake.clock.advance(LONGEST_QUIET_MS);
    await intake.clock.advance(QUIET_MS * 0.2);
    const soon = queriesAtMs[1]! - queriesAtMs[0]!;
    assert.ok(soon <= QUIET_MS * 0.1 * 1.2 + 1, `${soon}`);
    await intake.clock.advance(2 * LONGEST_QUIET_MS);
    const later = queriesAtMs[2]! - queriesAtMs[1]!;
    assert.ok(later >= QUIET_MS * 0.8, `${later}`);
  });

  it("goes on after the index could not be read", async () => {
    const { intake } = await finding(2);
    const before = intake.db.faults;
    intake.db.faults = (call) => (call.operation === "Query" ? { kind: "throttle" } : before?.(call));
    await intake.clock.advance(3 * QUIET_MS);
    assert.equal(intake.connections.size, 0);
    intake.db.faults = before;
    await intake.clock.advance(LONGEST_QUIET_MS);
    assert.equal(intake.connections.size, 2);
  });

  it("goes on after an orphan that nobody can take", async () => {
    const { intake } = await finding(3);
    await intake.seed("c-0001", { ws_url: { S: "nonsense" } });
    await intake.clock.advance(LONGEST_QUIET_MS);
    assert.deepEqual(intake.heldIds.sort(), ["c-0000", "c-0002"]);
  });

  it("ends with its stop, also in the middle, and leaves no timer", async () => {
    const { intake, finder, acquired } = await finding(30, { maxConnections: 30, tokensPerSecond: 1, burst: 2 });
    await intake.clock.advanceUntil(() => acquired.length === 2, LONGEST_QUIET_MS);
    await finder.stop();
    finder.onSweepHint();
    await intake.clock.advance(10 * QUIET_MS);
    assert.equal(acquired.length, 2);
    await intake.end();
    assert.equal(intake.clock.pendingTimers, 0);
  });
});
