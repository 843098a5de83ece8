import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { SystemClock } from "../../../shared/clock.ts";
import { silentLogger } from "../../../shared/logger.ts";
import { HintConsumer } from "../../../worker/intake/hint-consumer.ts";
import type { HintQueue } from "../../../worker/intake/hint-queue.ts";
import { until } from "../../local/stack/until.ts";
import { Intake, type IntakeOptions } from "../support/intake.ts";
import { startQueues, type EmbeddedQueues, type Queues } from "../support/queues.ts";

const ids = (count: number): string[] => Array.from({ length: count }, (_, n) => `c-${n}`);

describe("the consumer of hints", () => {
  let server: EmbeddedQueues;
  let intake: Intake<SystemClock>;
  let queues: Queues;
  let consumer: HintConsumer | undefined;
  /** How many hints each poll asked for, and how many connections were held or being acquired then. */
  let polls: { readonly max: number; readonly taken: number }[];
  let hints: number;
  before(async () => {
    server = await startQueues();
  });
  afterEach(async () => {
    consumer?.abandon();
    await consumer?.stop();
    consumer = undefined;
    await intake.end();
  });
  after(() => server.stop());

  const prepare = async (options: IntakeOptions = {}): Promise<void> => {
    intake = new Intake(new SystemClock(), options);
    queues = await server.create();
    polls = [];
    hints = 0;
  };
  const consume = (queue: HintQueue = queues.worker()): HintConsumer => {
    const { acquirer, clock, connections, metrics, random, tokens } = intake;
    const counted: HintQueue = {
      receive: (max, signal) => {
        polls.push({ max, taken: connections.size + connections.acquiring });
        return queue.receive(max, signal);
      },
      remove: (done) => queue.remove(done),
      giveBack: (received) => queue.giveBack(received),
      sendToDlq: (body) => queue.sendToDlq(body),
    };
    const deps = { acquirer, clock, connections, logger: silentLogger, metrics, queue: counted, random, tokens };
    consumer = new HintConsumer({ ...deps, onSweepHint: () => hints++ });
    consumer.start();
    return consumer;
  };
  const empty = async (): Promise<boolean> => {
    const { visible, inFlight } = await queues.left();
    return visible + inFlight === 0;
  };

  it("acts on hints and deletes them", async () => {
    await prepare({ maxConnections: 30 });
    await intake.seed(ids(25));
    await queues.hint(...ids(25));
    consume();
    await until("all are held", () => intake.connections.size === 25);
    await until("the queue is empty", empty);
    assert.ok(hints > 0);
    assert.ok(polls.every(({ max }) => max >= 1 && max <= 10));
  });

  it("asks for no more than there are free slots, and for nothing at capacity", async () => {
    await prepare({ maxConnections: 3 });
    await intake.seed(ids(8));
    await queues.hint(...ids(8));
    consume();
    await until("the slots are taken", () => intake.connections.size === 3);
    assert.ok(
      polls.every(({ max, taken }) => max + taken <= 3),
      JSON.stringify(polls),
    );
    await until("the three are deleted", async () => (await queues.left()).inFlight === 0);
    assert.equal((await queues.left()).visible, 5, "the rest stays visible for others, and for scaling");

    // The next poll comes because a slot got free, and for that slot alone.
    const asked = polls.length;
    const [first] = intake.connections.all();
    for (const socket of intake.dial.sockets) socket.terminate();
    await first?.drain();
    await until("the slot is taken again", () => intake.connections.size === 3 && polls.length > asked);
    assert.deepEqual(
      polls.slice(asked).map(({ max }) => max),
      [1],
    );
  });

  it("asks for no more than there are tokens", async () => {
    await prepare({ maxConnections: 100, tokensPerSecond: 5, burst: 2 });
    await intake.seed(ids(6));
    await queues.hint(...ids(6));
    const startMs = performance.now();
    consume();
    await until("all are held", () => intake.connections.size === 6);
    assert.ok(
      polls.every(({ max }) => max <= 2),
      JSON.stringify(polls),
    );
    assert.ok(performance.now() - startMs >= 700, "four tokens take four fifths of a second");
  });

  it("moves what nobody can read to the dead-letter queue, once, and goes on", async () => {
    await prepare();
    await intake.seed("c-0");
    const poison = ["not JSON", "{}", '{"v":1,"connection_id":"a#b","reason":"orphaned","hinted_at_ms":1}'];
    for (const body of poison) await queues.send(body);
    await queues.hint("c-0");
    consume();
    await until("the good one is held", () => intake.connections.size === 1);
    await until("the queue is empty", empty);
    assert.deepEqual((await queues.take(queues.dlqUrl, 60)).sort(), [...poison].sort());
    assert.equal(intake.metrics.counted("MalformedHints"), 3);
  });

  it("keeps a body that nobody can read where it is when the dead-letter queue does not take it", async () => {
    await prepare();
    const queue = queues.worker({ hintVisibilityMs: 1000 });
    let refused = 0;
    await queues.send("not JSON");
    consume({
      ...queue,
      sendToDlq: (body) => (refused++ === 0 ? Promise.reject(new Error("no such queue")) : queue.sendToDlq(body)),
    });
    await until("it is moved in the end", empty);
    assert.equal(refused, 2);
    assert.deepEqual(await queues.take(queues.dlqUrl, 60), ["not JSON"]);
  });

  it("is not impressed by the same hint ten times, nor by hints without effect", async () => {
    await prepare({ maxConnections: 30 });
    await intake.seed("c-0");
    await intake.seed("stopped", { desired_state: { S: "STOPPED" } });
    let writes = 0;
    intake.db.faults = ({ operation, input }) => {
      if (operation === "UpdateItem" && JSON.stringify(input).includes('"c-0"')) writes++;
      return undefined;
    };
    await queues.hint(...Array<string>(10).fill("c-0"), "stopped", "gone");
    consume();
    await until("the queue is empty", empty);
    assert.deepEqual(intake.heldIds, ["c-0"]);
    assert.equal(writes, 1);
  });

  it("leaves a hint to reappear while nobody can say what became of the acquire", async () => {
    await prepare();
    await intake.seed("c-0");
    let tries = 0;
    intake.db.faults = ({ operation }) =>
      operation === "UpdateItem" && ++tries <= 2 ? { kind: "throttle" } : undefined;
    await queues.hint("c-0");
    consume(queues.worker({ hintVisibilityMs: 1000 }));
    await until("it is held in the end", () => intake.connections.size === 1);
    assert.equal(tries, 3);
    await until("the queue is empty", empty);
  });

  it("survives a mistake in the handling of one hint", async () => {
    await prepare();
    await intake.seed(ids(2));
    intake.mistake = new TypeError("a mistake");
    await queues.hint("c-0");
    consume(queues.worker({ hintVisibilityMs: 1000 }));
    await until("it went wrong", () => intake.lease("c-0").owner === "me");
    intake.mistake = undefined;
    await queues.hint("c-1");
    await until("both are held", () => intake.connections.size === 2);
  });

  it("gives back at once what an open poll brings after the stop", async () => {
    await prepare();
    await intake.seed("c-0");
    // Hidden for a minute, unless it is given back.
    const stopping = consume(queues.worker({ hintVisibilityMs: 60_000, longPollMs: 20_000 }));
    await until("the poll is open", () => polls.length === 1);
    const stopped = stopping.stop();
    await queues.hint("c-0");
    await stopped;
    assert.equal((await queues.take(queues.url)).length, 1);
    assert.equal(intake.lease("c-0").owner, undefined);
    assert.equal(polls.length, 1);
  });

  it("finishes what it is handling before its stop is done, deletes included", async () => {
    await prepare();
    await intake.seed("c-0");
    let release = (): void => undefined;
    const queue = queues.worker({ longPollMs: 0 });
    const removing = new Promise<void>((resolve) => (release = resolve));
    let removed = 0;
    await queues.hint("c-0");
    const stopping = consume({
      ...queue,
      remove: async (done) => {
        if (done.length === 0) return;
        await removing;
        await queue.remove(done);
        removed += done.length;
      },
    });
    await until("it is held", () => intake.connections.size === 1);
    const stopped = stopping.stop();
    release();
    await stopped;
    assert.equal(removed, 1);
    assert.equal(await empty(), true);
  });

  it("hangs up on the open poll when it is abandoned", async () => {
    await prepare();
    const one = consume();
    await until("the poll is open", () => polls.length === 1);
    const startMs = performance.now();
    one.abandon();
    await one.stop();
    assert.ok(performance.now() - startMs < 10_000, "the poll would have stayed open for 20 s");
  });

  it("asks again after a failed poll, a little later, and may be stopped meanwhile", async () => {
    await prepare();
    await intake.seed("c-0");
    const queue = queues.worker();
    let failures = 0;
    const failing: HintQueue = {
      ...queue,
      receive: (max, signal) =>
        failures++ < 2 ? Promise.reject(new Error("connect ECONNREFUSED")) : queue.receive(max, signal),
    };
    await queues.hint("c-0");
    consume(failing);
    await until("it is held", () => intake.connections.size === 1);
    assert.equal(failures >= 3, true);
  });

  it("does not sit out the pause after a poll that failed while it was being stopped", async () => {
    await prepare({ random: () => 0.999 });
    let fail = (): void => undefined;
    const stopping = consume({
      ...queues.worker(),
      receive: () => new Promise((_, reject) => (fail = () => reject(new Error("ECONNRESET")))),
    });
    await until("the poll is open", () => polls.length === 1);
    const stopped = stopping.stop();
    let pauses = 0;
    const { clock } = intake;
    const after = clock.after.bind(clock);
    clock.after = (delayMs, fn) => {
      pauses++;
      return after(delayMs, fn);
    };
    fail();
    await stopped;
    assert.equal(pauses, 0);
  });
});
