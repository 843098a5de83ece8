import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VirtualWorker } from "./support/virtual-worker.ts";

const ids = (count: number): string[] => Array.from({ length: count }, (_, n) => `c-${n}`);
const BUDGET_MS = 60_000;

/** Drains while time passes; gives the answer and how long it took. */
async function drained(one: VirtualWorker, limitMs = 2 * BUDGET_MS): Promise<{ clean: boolean; tookMs: number }> {
  let clean: boolean | undefined;
  void one.worker.drain().then((answer) => (clean = answer));
  const tookMs = await one.clock.advanceUntil(() => clean !== undefined, limitMs);
  return { clean: clean === true, tookMs };
}

describe("a worker", () => {
  it("takes what it is hinted at, stores what comes, and gives everything back", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    await one.take(...ids(20));
    for (const [n, socket] of one.dial.sockets.entries()) socket.send(`message ${n}`);
    const report = one.worker.health();
    assert.deepEqual([report.healthy, report["connections"], report["states"]], [true, 20, { streaming: 20 }]);

    const { clean, tookMs } = await drained(one);
    assert.equal(clean, true);
    assert.ok(tookMs < 2000, `${tookMs} ms: the peers' grace, all side by side`);
    assert.equal(one.stored.length, 20);
    for (const id of ids(20)) assert.deepEqual([one.lease(id).owner, one.lease(id).expiresAtMs], [undefined, 0]);
    assert.equal(one.clock.pendingTimers, 0, "nothing of it goes on");
  });

  it("drains once, however often it is asked to", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    await one.take("c-0");
    assert.equal(one.worker.drain(), one.worker.drain());
    assert.equal((await drained(one)).clean, true);
    assert.equal(one.worker.health()["draining"], true);
  });

  it("takes nothing any more once it drains, and hints stay for others", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    await one.put("late");
    void one.worker.drain();
    one.queue.hint("late");
    await one.clock.advance(5000);
    assert.equal(one.lease("late").owner, undefined);
    assert.equal(one.queue.visible.length, 1);
  });

  it("gives back too what was acquired at the very moment at which the drain began", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    await one.put("c-0");
    let answer: Promise<boolean> | undefined;
    const record = one.journal.record.bind(one.journal);
    one.journal.record = (event, holding) => {
      record(event, holding);
      // Acquired, and not yet among the connections.
      if (event === "held") answer = one.worker.drain();
    };
    one.queue.hint("c-0");
    await one.clock.advance(5000);
    assert.equal(await answer, true);
    assert.deepEqual([one.lease("c-0").owner, one.lease("c-0").expiresAtMs], [undefined, 0]);
    assert.equal(one.clock.pendingTimers, 0);
  });

  it("may be drained before it has begun", async () => {
    const one = new VirtualWorker();
    const started = one.worker.start();
    assert.equal((await drained(one)).clean, true);
    await started;
    await one.clock.advance(60_000);
    assert.equal(one.queue.openPolls, 0);
    assert.equal(one.clock.pendingTimers, 0);
  });

  it("ends its drain with the budget when leases cannot be given back, and says so", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    await one.take(...ids(3));
    one.breakStore("lease");
    const { clean, tookMs } = await drained(one);
    assert.equal(clean, false);
    assert.equal(tookMs, BUDGET_MS);
    assert.ok(one.said("leases are left to expire"));
  });

  it("ends its drain with the budget when what a lost connection had received cannot be stored", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    await one.take("c-0");
    one.breakStore("messages");
    one.dial.sockets[0]?.send("received before the loss");
    await one.steal("c-0");
    await one.clock.advanceUntil(() => one.worker.health()["connections"] === 0, 10_000);
    const { clean, tookMs } = await drained(one);
    assert.equal(clean, false);
    assert.ok(tookMs <= BUDGET_MS, `${tookMs}`);
  });

  it("stores what a lost connection had received before it leaves", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    await one.take("c-0");
    one.breakStore("messages");
    one.dial.sockets[0]?.send("received before the loss");
    await one.steal("c-0");
    await one.clock.advanceUntil(() => one.worker.health()["connections"] === 0, 10_000);
    void one.worker.drain();
    await one.clock.advance(5000);
    one.breakStore(undefined);
    assert.equal((await drained(one)).clean, true);
    assert.deepEqual(one.stored, ["received before the loss"]);
  });

  it("begins when the store has answered, not before: nobody has compared its clock", async () => {
    const one = new VirtualWorker();
    await one.put("c-0");
    one.breakStore("lease");
    void one.worker.start();
    one.queue.hint("c-0");
    await one.clock.advance(60_000);
    assert.equal(one.queue.openPolls, 0);
    assert.equal(one.queue.visible.length, 1);
    assert.equal(one.worker.health().healthy, true);
    one.breakStore(undefined);
    await one.clock.advanceUntil(() => one.worker.health()["connections"] === 1, 5000);
  });

  it("stays healthy through an outage of the store, and is there again afterwards", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    await one.take(...ids(5));
    one.breakStore("lease");
    for (let step = 0; step < 60; step++) {
      await one.clock.advance(1000);
      assert.equal(one.worker.health().healthy, true);
    }
    assert.equal(one.worker.health()["openSockets"], 0, "fenced");
    one.breakStore(undefined);
    await one.clock.advanceUntil(() => {
      for (const socket of one.dial.sockets) socket.open();
      return one.worker.health()["openSockets"] === 5;
    }, 60_000);
  });

  it("finds orphans by itself when hints do not come", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    for (const id of ids(4)) await one.put(id);
    await one.clock.advanceUntil(() => one.worker.health()["connections"] === 4, 36_000 + 1000);
  });

  it("never holds more than its cap, whoever brings the connections", async () => {
    const one = new VirtualWorker({ WS_FLEET_MAX_CONNECTIONS: "5", WS_FLEET_TARGET_CONNECTIONS: "4" });
    await one.worker.start();
    for (const id of ids(40)) await one.put(id);
    // An open poll has asked for five when the worker's own look takes all the slots.
    await one.clock.advanceUntil(() => one.worker.health()["connections"] === 5, 37_000);
    one.queue.hint(...ids(40));
    for (let step = 0; step < 60; step++) {
      await one.clock.advance(1000);
      assert.ok((one.worker.health()["connections"] as number) <= 5);
    }
  });

  it("publishes zeros where nothing happened, since missing data blocks scaling", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    await one.clock.settle();
    const names = one.published[0]?.map(({ name }) => name);
    for (const name of ["ActiveConnections", "OpenSockets", "LeaseLost", "LeaseFenced"])
      assert.ok(names?.includes(name as never));
    await one.clock.advance(30_000);
    assert.equal(one.published.length, 2);
  });
});

describe("a worker whose clock is proven to be off", () => {
  /** What the store's answers say when the anchored clock is off by `offsetMs`. */
  const observe = (one: VirtualWorker, offsetMs: number): void => {
    for (let n = 0; n < 40; n++) {
      const nowMs = one.anchored.nowMs();
      const dateMs = Math.floor((nowMs - offsetMs + n * 25) / 1000) * 1000;
      one.guard.observe({ sentAtMs: nowMs + n * 25, receivedAtMs: nowMs + n * 25, dateMs });
    }
  };

  it("gives everything back, polls nothing, anchors anew and goes on", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    await one.take(...ids(3));
    observe(one, 30_000);
    assert.equal(one.guard.beyondSkew(), true);
    one.machine.stepWall(-30_000);
    await one.clock.advanceUntil(() => one.worker.health()["connections"] === 0, 5000);
    for (const id of ids(3)) assert.equal(one.lease(id).owner, undefined);
    assert.ok(one.said("clock is off beyond the skew"));

    await one.clock.advanceUntil(() => one.said("clock anchored anew"), 20_000);
    assert.equal(one.anchored.nowMs(), one.machine.wallMs());
    one.queue.hint(...ids(3));
    await one.clock.advanceUntil(() => one.worker.health()["connections"] === 3, 10_000);
  });

  it("takes nothing while it stays off", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    await one.put("c-0");
    const bad = (): void => {
      if (one.guard.interval() === undefined) observe(one, 30_000);
    };
    // Every answer of the store keeps saying so.
    one.db.faults = () => {
      bad();
      return undefined;
    };
    bad();
    await one.clock.advance(2000);
    one.queue.hint("c-0");
    await one.clock.advance(60_000);
    assert.equal(one.lease("c-0").owner, undefined);
    assert.equal(one.queue.openPolls, 0);
    assert.equal((await drained(one)).clean, true);
  });
});

describe("a worker whose machine was suspended, or whose wall clock was set forward", () => {
  it("acquires nothing as long as its anchored time may be late, and the hint stays", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    await one.put("c-0");
    one.machine.stepWall(5000);
    one.queue.hint("c-0");
    await one.clock.advanceUntil(() => one.said("nothing is taken now"), 5000);
    assert.equal(one.lease("c-0").owner, undefined);
    await one.clock.advanceUntil(() => one.lease("c-0").owner === "me", 20_000);
    assert.equal(one.anchored.nowMs(), one.machine.wallMs());
    assert.ok((one.lease("c-0").expiresAtMs ?? 0) >= one.machine.wallMs() + 14_000);
  });

  it("gives everything back, and anchors anew where the store does not contradict the wall clock", async () => {
    const one = new VirtualWorker();
    await one.worker.start();
    await one.take(...ids(3));
    one.machine.stepWall(5000);
    await one.clock.advanceUntil(() => one.worker.health()["connections"] === 0, 5000);
    for (const id of ids(3)) assert.equal(one.lease(id).owner, undefined);
    await one.clock.advanceUntil(() => one.said("clock anchored anew"), 20_000);
    assert.equal(one.anchored.nowMs(), one.machine.wallMs());
  });

  it("keeps its former anchor where the store contradicts the wall clock", async () => {
    const one = new VirtualWorker();
    const trueOffsetMs = one.machine.wallMs() - one.clock.monotonicMs();
    // Every answer of the store tells the true time.
    one.db.faults = () => {
      const nowMs = one.anchored.nowMs();
      const trueMs = trueOffsetMs + one.clock.monotonicMs();
      one.guard.observe({ sentAtMs: nowMs, receivedAtMs: nowMs, dateMs: Math.floor(trueMs / 1000) * 1000 });
      return undefined;
    };
    await one.worker.start();
    await one.take(...ids(3));
    one.machine.stepWall(3_600_000);
    await one.clock.advanceUntil(() => one.said("clock anchored anew"), 30_000);
    assert.ok(Math.abs(one.anchored.nowMs() - (trueOffsetMs + one.clock.monotonicMs())) <= 1);
    one.queue.hint(...ids(3));
    await one.clock.advanceUntil(() => one.worker.health()["connections"] === 3, 10_000);
    // It stays so: the wall clock's error is known now.
    await one.clock.advance(60_000);
    assert.equal(one.worker.health()["connections"], 3);
  });
});
