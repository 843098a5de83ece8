import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import type { RawItem } from "../../../shared/connection/item.ts";
import {
  acquire,
  deleteConnection,
  mend,
  park,
  release,
  renew,
  start,
  stop,
  type CallOptions,
  type KindChange,
  type Outcome,
} from "../../../shared/lease/index.ts";
import { fakeConnections, type FakeConnections } from "../../support/fake-connections.ts";
import type { Fault } from "../../support/fake-dynamodb/fake-dynamodb.ts";
import { EPOCH, freeItem, heldItem, LEASE_MS, ME, NOW_MS, SKEW_MS, without } from "./contract/items.ts";
import { ContractStore } from "./contract/store.ts";

const UNTIL_MS = NOW_MS + 600_000;

interface Operation {
  readonly name: string;
  /** What the operation finds. */
  readonly item: (connectionId: string) => RawItem;
  readonly run: (connectionId: string, options?: CallOptions) => Promise<Outcome<unknown> | KindChange>;
}

describe("lease operations under faults", () => {
  let fake: FakeConnections;
  let store: ContractStore;
  beforeEach(async () => {
    fake = fakeConnections();
    store = new ContractStore(() => Promise.resolve(fake.table));
    await store.open();
  });

  /** The fault hits the next write and nothing else. */
  const nextWrite = (fault: Fault): void => {
    let armed = true;
    fake.dynamoDb.faults = ({ operation }) => {
      if (!armed || (operation !== "UpdateItem" && operation !== "DeleteItem")) return undefined;
      armed = false;
      return fault;
    };
  };

  const holder = (connectionId: string) => ({ connectionId, owner: ME, epoch: EPOCH });
  const bare = (id: string) => without(heldItem(id), "lease_expires_at_ms");
  const operations: Operation[] = [
    {
      name: "acquire",
      item: (id: string) => freeItem(id),
      run: (connectionId: string, options?: CallOptions) =>
        acquire(fake.table, { connectionId, owner: ME, nowMs: NOW_MS, leaseMs: LEASE_MS, skewMs: SKEW_MS }, options),
    },
    {
      name: "renew",
      item: (id: string) => heldItem(id),
      run: (connectionId: string, options?: CallOptions) =>
        renew(
          fake.table,
          { ...holder(connectionId), expiresAtMs: UNTIL_MS, checkpoint: { lastSeq: 77n }, clearFailures: true },
          options,
        ),
    },
    {
      name: "release",
      item: (id: string) => heldItem(id),
      run: (connectionId: string, options?: CallOptions) =>
        release(fake.table, { ...holder(connectionId), checkpoint: { lastSeq: 77n } }, options),
    },
    {
      name: "park",
      item: (id: string) => heldItem(id),
      run: (connectionId: string, options?: CallOptions) =>
        park(fake.table, { ...holder(connectionId), untilMs: UNTIL_MS, error: "HTTP 403" }, options),
    },
    {
      name: "start",
      item: (id: string) => freeItem(id, { upstream: { M: {} } }),
      run: (connectionId: string, options?: CallOptions) =>
        start(fake.table, { connectionId, wsUrl: "wss://feed.test/new" }, options),
    },
    {
      name: "stop",
      item: (id: string) => heldItem(id),
      run: (connectionId: string, options?: CallOptions) => stop(fake.table, connectionId, options),
    },
    {
      name: "deleteConnection",
      item: (id: string) => freeItem(id, { desired_state: { S: "STOPPED" } }),
      run: (connectionId: string, options?: CallOptions) =>
        deleteConnection(fake.table, { connectionId, nowMs: fake.clock.wallMs(), skewMs: 1000 }, options),
    },
    {
      name: "mend",
      item: (id: string) => bare(id),
      run: (connectionId: string, options?: CallOptions) =>
        mend(fake.table, { connectionId, seen: bare(connectionId), nowMs: NOW_MS, leaseMs: LEASE_MS }, options),
    },
  ];

  for (const { name, item, run } of operations) {
    describe(name, () => {
      /** What the operation does when nothing is in its way. */
      const effect = async () => {
        const id = await store.put(item("reference"));
        assert.equal((await run(id)).kind, "held");
        return store.get(id);
      };
      const assertEffect = async (id: string) => {
        const reference = await effect();
        const expected = reference === undefined ? undefined : { ...reference, connection_id: { S: id } };
        assert.deepEqual(await store.get(id), expected);
      };

      for (const [fault, reason] of [
        [{ kind: "throttle" }, "throttled"],
        [{ kind: "server-error" }, "server"],
        [{ kind: "credentials" }, "credentials"],
        [{ kind: "credentials", name: "ExpiredTokenException" }, "credentials"],
      ] as const) {
        it(`is unknown (${reason}) after ${JSON.stringify(fault)}, wrote nothing, and works when asked again`, async () => {
          const id = await store.put(item(store.newId()));
          nextWrite(fault);
          const outcome = await store.unchanged(id, () => run(id));
          assert.equal(outcome.kind === "unknown" && outcome.reason, reason);
          assert.equal((await run(id)).kind, "held");
          await assertEffect(id);
        });
      }

      it("is unknown (timeout) when no answer comes until the caller gives up", async () => {
        const id = await store.put(item(store.newId()));
        nextWrite({ kind: "no-answer" });
        const abort = new AbortController();
        const pending = store.unchanged(id, () => run(id, { signal: abort.signal }));
        await fake.clock.settle();
        abort.abort();
        const outcome = await pending;
        assert.equal(outcome.kind === "unknown" && outcome.reason, "timeout");
      });

      it("is unknown (timeout) when it was given up before it began", async () => {
        const id = await store.put(item(store.newId()));
        const outcome = await store.unchanged(id, () => run(id, { signal: AbortSignal.abort() }));
        assert.equal(outcome.kind === "unknown" && outcome.reason, "timeout");
      });

      it("recognises its own success when a 500 came although it was applied", async () => {
        const id = await store.put(item(store.newId()));
        nextWrite({ kind: "apply-then-error" });
        const outcome = await run(id);
        assert.equal(outcome.kind === "unknown" && outcome.reason, "server");
        await assertEffect(id);
        assert.equal((await run(id)).kind, "held");
        await assertEffect(id);
      });

      it("recognises its own success when it was applied and given up", async () => {
        const id = await store.put(item(store.newId()));
        nextWrite({ kind: "apply-then-timeout" });
        const abort = new AbortController();
        const pending = run(id, { signal: abort.signal });
        await fake.clock.settle();
        abort.abort();
        const outcome = await pending;
        assert.equal(outcome.kind === "unknown" && outcome.reason, "timeout");
        assert.equal((await run(id)).kind, "held");
        await assertEffect(id);
      });

      it("is done once when the first attempt arrives after the second", async () => {
        const id = await store.put(item(store.newId()));
        nextWrite({ kind: "delayed-apply", applyAfterMs: 5000 });
        const outcome = await store.unchanged(id, () => run(id));
        assert.equal(outcome.kind === "unknown" && outcome.reason, "timeout");
        assert.equal((await run(id)).kind, "held");
        await fake.clock.advance(5000);
        await assertEffect(id);
      });

      it("recognises its own success when the first attempt arrived late, but before the second", async () => {
        const id = await store.put(item(store.newId()));
        nextWrite({ kind: "delayed-apply", applyAfterMs: 5000 });
        assert.equal((await run(id)).kind, "unknown");
        await fake.clock.advance(5000);
        await assertEffect(id);
        assert.equal((await run(id)).kind, "held");
        await assertEffect(id);
      });
    });
  }
});
