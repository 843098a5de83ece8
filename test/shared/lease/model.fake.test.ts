import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { AnchoredClock, type Clock } from "../../../shared/clock.ts";
import { leaseOf } from "../../../shared/connection/item.ts";
import { acquire, Deadline, park, release, releaseOf, renew, start, stop } from "../../../shared/lease/index.ts";
import { fakeConnections, type FakeConnections } from "../../support/fake-connections.ts";
import type { Fault } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { LEASE_MS, SKEW_MS } from "./contract/items.ts";

/**
 * Several workers and one connection, in any order of steps, with requests that are refused, lost, applied without an
 * answer, or applied much later. Clocks differ by up to the skew. Whatever happens, at most one worker is inside its local
 * deadline, and nothing that is stored moves backwards.
 */

const MARGIN_MS = 3000;
const ID = "connection";
const WORKERS = 3;

type Step =
  | {
      readonly kind: "acquire" | "renew" | "release" | "park" | "crash";
      readonly worker: number;
      readonly fault: Fault | undefined;
    }
  | { readonly kind: "start" | "stop"; readonly fault: Fault | undefined }
  | { readonly kind: "pass"; readonly ms: number };

const fault: fc.Arbitrary<Fault | undefined> = fc.oneof(
  { weight: 6, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constantFrom<Fault>({ kind: "throttle" }, { kind: "apply-then-error" }) },
  {
    weight: 2,
    arbitrary: fc
      .integer({ min: 0, max: 60_000 })
      .map((applyAfterMs): Fault => ({ kind: "delayed-apply", applyAfterMs })),
  },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom("acquire", "acquire", "acquire", "renew", "renew", "renew", "release", "park", "crash"),
      worker: fc.nat(WORKERS - 1),
      fault,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("start", "stop", "start"), fault }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("pass"), ms: fc.integer({ min: 1, max: 9000 }) }) },
);

interface Held {
  readonly epoch: bigint;
  expiresAtMs: number;
  deadline: Deadline;
  lastSeq: bigint;
  /** Set once an end was asked for: it does not act any more, and nothing is acquired before that end is known. */
  ending: boolean;
}

/** A worker reduced to its use of the lease operations. */
class ModelWorker {
  readonly #fake: FakeConnections;
  readonly #clock: Clock;
  readonly #anchored: AnchoredClock;
  readonly #number: number;
  #life = 1;
  held: Held | undefined;

  constructor(fake: FakeConnections, number: number, offsetMs: number) {
    this.#fake = fake;
    this.#number = number;
    this.#clock = fake.clock.machine(offsetMs);
    this.#anchored = new AnchoredClock(this.#clock);
  }

  get name(): string {
    return `worker-${this.#number}-${this.#life}`;
  }

  acting(): boolean {
    return this.held !== undefined && !this.held.ending && !this.held.deadline.passed();
  }

  async acquire(): Promise<void> {
    if (this.held !== undefined) return;
    const deadline = this.#newDeadline();
    const nowMs = this.#anchored.nowMs();
    const request = { connectionId: ID, owner: this.name, nowMs, leaseMs: LEASE_MS, skewMs: SKEW_MS };
    const outcome = await acquire(this.#fake.table, request);
    if (outcome.kind === "held") {
      const lastSeq = BigInt(outcome.value.item["last_seq"]?.N ?? "0");
      this.held = { ...outcome.value, deadline, lastSeq, ending: false };
    } else if (outcome.kind === "lost" && outcome.reason === "own-older-life") {
      const { epoch, expiresAtMs } = leaseOf(outcome.item ?? {});
      const lastSeq = BigInt(outcome.item?.["last_seq"]?.N ?? "0");
      assert.ok(epoch !== undefined && expiresAtMs !== undefined);
      // Not acting: its deadline has passed until the renewal is confirmed.
      const past = Deadline.startingNow(this.#clock, 0);
      this.held = { epoch, expiresAtMs, deadline: past, lastSeq, ending: false };
      await this.renew();
    }
  }

  async renew(): Promise<void> {
    const { held } = this;
    if (held === undefined || held.ending) return;
    const deadline = this.#newDeadline();
    held.expiresAtMs = Math.max(this.#anchored.nowMs() + LEASE_MS, held.expiresAtMs + 1);
    held.lastSeq += 1n;
    const checkpoint = { lastSeq: held.lastSeq };
    const outcome = await renew(this.#fake.table, { ...this.#holder(held), expiresAtMs: held.expiresAtMs, checkpoint });
    if (outcome.kind === "held") held.deadline = deadline;
    if (outcome.kind === "lost") this.held = undefined;
  }

  async end(how: "release" | "park"): Promise<void> {
    const { held } = this;
    if (held === undefined) return;
    held.ending = true;
    const holder = { ...this.#holder(held), checkpoint: { lastSeq: held.lastSeq } };
    const untilMs = this.#anchored.nowMs() + 5000;
    const outcome =
      how === "release"
        ? await release(this.#fake.table, holder)
        : await park(this.#fake.table, { ...holder, untilMs, error: "model" });
    if (outcome.kind !== "unknown") this.held = undefined;
  }

  /** Dies without a word; its supervisor may still say so. What it sent before may arrive after that. */
  async crash(): Promise<void> {
    const dead = this.name;
    this.held = undefined;
    this.#life++;
    const { clock, table } = this.#fake;
    await releaseOf({ table, clock }, { deadTask: dead, perSecond: 1000, attempts: 1 });
  }

  #holder(held: Held) {
    return { connectionId: ID, owner: this.name, epoch: held.epoch };
  }

  #newDeadline(): Deadline {
    return Deadline.startingNow(this.#clock, LEASE_MS - MARGIN_MS);
  }
}

async function take(next: Step, fake: FakeConnections, workers: readonly ModelWorker[]): Promise<unknown> {
  switch (next.kind) {
    case "pass":
      return fake.clock.advance(next.ms);
    case "start":
      return start(fake.table, { connectionId: ID, wsUrl: "wss://feed.test/" });
    case "stop":
      return stop(fake.table, ID);
    case "acquire":
      return workers[next.worker]?.acquire();
    case "renew":
      return workers[next.worker]?.renew();
    case "crash":
      return workers[next.worker]?.crash();
    case "release":
    case "park":
      return workers[next.worker]?.end(next.kind);
  }
}

interface Counts {
  acquired: number;
  handOvers: number;
}

async function run(offsetsMs: readonly number[], steps: readonly Step[], counts: Counts): Promise<void> {
  const fake = fakeConnections();
  const workers = offsetsMs.map((offsetMs, i) => new ModelWorker(fake, i, offsetMs));
  let before = { epoch: 0n, expiresAtMs: 0, lastSeq: 0n, owner: undefined as string | undefined };
  fake.dynamoDb.onStreamRecord(({ dynamodb }) => {
    const { owner, epoch = 0n, expiresAtMs = 0 } = leaseOf(dynamodb.NewImage ?? {});
    const lastSeq = BigInt(dynamodb.NewImage?.["last_seq"]?.N ?? "0");
    assert.ok(epoch >= before.epoch, "the epoch fell");
    assert.ok(lastSeq >= before.lastSeq, "the checkpoint fell");
    if (epoch > before.epoch) counts.acquired++;
    if (owner !== undefined && epoch === before.epoch) {
      assert.ok(before.owner !== undefined, "a lease that was given back came to life again under its old epoch");
      assert.equal(owner, before.owner, "an epoch changed hands");
      assert.ok(expiresAtMs >= before.expiresAtMs, "the expiry of an epoch fell");
    }
    if (owner !== undefined && before.owner !== undefined && owner !== before.owner) counts.handOvers++;
    before = { epoch, expiresAtMs, lastSeq, owner };
  });
  const check = (): void => {
    const acting = workers.filter((worker) => worker.acting());
    assert.ok(acting.length <= 1, `${acting.map(({ name }) => name).join(" and ")} act at once`);
  };

  await start(fake.table, { connectionId: ID, wsUrl: "wss://feed.test/" });
  for (const next of steps) {
    // A query is not what these faults are about.
    fake.dynamoDb.faults = ({ operation }) => (next.kind === "pass" || operation === "Query" ? undefined : next.fault);
    await take(next, fake, workers);
    fake.dynamoDb.faults = undefined;
    check();
  }

  // Once the faults end, everything late has arrived and every lease has run out, the connection can be taken again.
  await fake.clock.advance(60_000);
  check();
  for (const worker of workers) await worker.end("release");
  await start(fake.table, { connectionId: ID, wsUrl: "wss://feed.test/" });
  await fake.clock.advance(60_000 + LEASE_MS + 2 * SKEW_MS);
  await workers[0]!.acquire();
  assert.equal(workers[0]!.acting(), true);
  check();
}

describe("the lease protocol as a whole", () => {
  it(
    "has at most one acting owner and never moves backwards, whatever order things happen in",
    { timeout: 300_000 },
    async () => {
      const counts = { acquired: 0, handOvers: 0 };
      const offsets = fc.array(fc.integer({ min: 0, max: SKEW_MS }), { minLength: WORKERS, maxLength: WORKERS });
      const steps = fc.array(step, { minLength: 20, maxLength: 80, size: "max" });
      await fc.assert(
        fc.asyncProperty(offsets, steps, (offsetsMs, list) => run(offsetsMs, list, counts)),
        // A violation is reported as far as it could be made smaller in this time.
        { numRuns: 500, plugins: [fc.interruptAfterTimeLimit(120_000, { failOnInterrupt: true })] },
      );
      assert.ok(counts.acquired > 500 && counts.handOvers > 50, `nothing much happened: ${JSON.stringify(counts)}`);
    },
  );
});
