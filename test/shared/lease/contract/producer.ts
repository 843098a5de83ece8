import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MalformedItemError } from "../../../../shared/connection/item.ts";
import type { UpstreamSettings } from "../../../../shared/connection/upstream-settings.ts";
import { deleteConnection, start, stop, type LeaseTable } from "../../../../shared/lease/index.ts";
import { freeItem, heldItem, NOW_MS, OTHER, without } from "./items.ts";
import type { ContractStore } from "./store.ts";

const URL_A = "wss://feed.test/a?since={cursor}";
const POSITIONED: UpstreamSettings = { position: { pointer: "/seq", kind: "sequence", initial: "0" } };
const RAW_POSITIONED = {
  M: { position: { M: { pointer: { S: "/seq" }, kind: { S: "sequence" }, initial: { S: "0" } } } },
};
const CURSORED: UpstreamSettings = { position: { pointer: "/at", kind: "cursor" } };

export function producerContract(store: ContractStore): void {
  const tryStart = (connectionId: string, upstream: UpstreamSettings = POSITIONED) =>
    start(store.table, { connectionId, wsUrl: URL_A, upstream });
  const asked = { desired_state: { S: "STARTED" }, ws_url: { S: URL_A }, upstream: RAW_POSITIONED };
  const unparked = { lease_expires_at_ms: { N: "0" }, failure_count: { N: "0" } };

  describe("start", () => {
    it("creates a connection that the orphan query sees at once", async () => {
      const id = store.newId();
      assert.deepEqual(await tryStart(id), { kind: "held", value: undefined });
      assert.deepEqual(await store.get(id), { connection_id: { S: id }, ...asked, ...unparked });
    });

    it("un-parks a free connection and keeps its epoch and its position", async () => {
      const parked = freeItem(store.newId(), { lease_expires_at_ms: { N: String(NOW_MS + 600_000) } });
      const id = await store.put(parked);
      assert.equal((await tryStart(id)).kind, "held");
      assert.deepEqual(await store.get(id), { ...without(parked, "last_error"), ...asked, ...unparked });
    });

    it("starts a stopped connection again", async () => {
      const stopped = freeItem(store.newId(), { desired_state: { S: "STOPPED" } });
      const id = await store.put(stopped);
      assert.equal((await tryStart(id)).kind, "held");
      assert.deepEqual(await store.get(id), { ...without(stopped, "last_error"), ...asked, ...unparked });
    });

    it("changes state and settings of a held connection, and never its lease", async () => {
      for (const desired of ["STARTED", "STOPPED"]) {
        const held = heldItem(store.newId(), { owner: OTHER }, { desired_state: { S: desired } });
        const id = await store.put(held);
        assert.equal((await tryStart(id)).kind, "held");
        assert.deepEqual(await store.get(id), { ...held, ...asked });
      }
    });

    it("leaves an expired lease to the acquire", async () => {
      const expired = heldItem(store.newId(), { owner: OTHER, expiresAtMs: NOW_MS - 600_000 });
      const id = await store.put(expired);
      await tryStart(id);
      assert.deepEqual(await store.get(id), { ...expired, ...asked });
    });

    it("asks for an unpositioned feed where it says nothing of settings", async () => {
      const id = store.newId();
      assert.equal((await start(store.table, { connectionId: id, wsUrl: URL_A })).kind, "held");
      assert.deepEqual((await store.get(id))?.["upstream"], { M: {} });
    });

    it("changes nothing more when it is sent again", async () => {
      const id = store.newId();
      await tryStart(id);
      assert.equal((await store.unchanged(id, () => tryStart(id))).kind, "held");
    });

    for (const [from, to, fromRaw, settings] of [
      ["positioned", "unpositioned", RAW_POSITIONED, {}],
      ["positioned", "a cursor", RAW_POSITIONED, CURSORED],
      ["unpositioned", "positioned", { M: {} }, POSITIONED],
      ["no settings", "positioned", undefined, POSITIONED],
      ["settings that are no map", "positioned", { S: "odd" }, POSITIONED],
      ["a position that is no map", "positioned", { M: { position: { S: "/seq" } } }, POSITIONED],
      ["a position of no kind", "positioned", { M: { position: { M: { pointer: { S: "/seq" } } } } }, POSITIONED],
    ] as const) {
      for (const build of [freeItem, (id: string) => heldItem(id, { owner: OTHER })]) {
        it(`refuses a change from ${from} to ${to} (${build === freeItem ? "free" : "held"})`, async () => {
          const { upstream: _upstream, ...rest } = build(store.newId());
          const item = { ...rest, ...(fromRaw === undefined ? {} : { upstream: fromRaw }) };
          const id = await store.put(item);
          const outcome = await store.unchanged(id, () => tryStart(id, settings));
          assert.deepEqual(outcome, { kind: "kind-change", item });
        });
      }
    }

    it("allows what does not change the meaning of stored keys", async () => {
      const cursored = store.newId();
      await tryStart(cursored, CURSORED);
      assert.equal((await tryStart(cursored, {})).kind, "held");
      assert.equal((await tryStart(cursored, CURSORED)).kind, "held");

      const positioned = store.newId();
      await tryStart(positioned);
      assert.equal((await tryStart(positioned, { position: { pointer: "/p", kind: "sequence" } })).kind, "held");
    });

    it("takes an item whose state nobody ever said for a new one, held or not", async () => {
      for (const build of [freeItem, heldItem]) {
        const item = without(build(store.newId()), "desired_state", "upstream");
        const id = await store.put(item);
        assert.equal((await tryStart(id)).kind, "held");
        assert.deepEqual((await store.get(id))?.["upstream"], RAW_POSITIONED);
        // In the other direction too: settings without a state were never acted on.
        const other = await store.put(without(build(store.newId(), { upstream: RAW_POSITIONED }), "desired_state"));
        assert.equal((await tryStart(other, {})).kind, "held");
      }
    });

    it("leaves out settings that are undefined", async () => {
      const id = store.newId();
      const position = { ...CURSORED.position, initial: undefined } as UpstreamSettings["position"];
      assert.equal((await tryStart(id, { position })).kind, "held");
      assert.deepEqual((await store.get(id))?.["upstream"], {
        M: { position: { M: { pointer: { S: "/at" }, kind: { S: "cursor" } } } },
      });
    });

    it("lets a deleted connection come back as the other kind", async () => {
      const id = store.newId();
      await tryStart(id);
      await stop(store.table, id);
      assert.equal(
        (await deleteConnection(store.table, { connectionId: id, nowMs: NOW_MS, skewMs: 1000 })).kind,
        "held",
      );
      assert.equal((await tryStart(id, {})).kind, "held");
    });

    for (const [what, id, wsUrl, upstream, field] of [
      ["an empty id", "", URL_A, {}, "connection_id"],
      ["an id that is too long", "x".repeat(1025), URL_A, {}, "connection_id"],
      ["an id with the separator of parts", "a#1", URL_A, {}, "connection_id"],
      ["text that is no URL", "ok", "feed.test", {}, "ws_url"],
      ["a URL of another scheme", "ok", "https://feed.test/", {}, "ws_url"],
      ["a pointer that is none", "ok", URL_A, { position: { pointer: "seq", kind: "sequence" } }, "position.pointer"],
    ] as const) {
      it(`throws on ${what}, names ${field}, and sends nothing`, async () => {
        const nothingSent = {
          tableName: "none",
          client: { send: () => assert.fail("must not be sent") } as unknown as LeaseTable["client"],
        };
        await assert.rejects(
          () => start(nothingSent, { connectionId: id, wsUrl, upstream }),
          (error: unknown) => error instanceof MalformedItemError && error.problems.join().includes(field),
        );
      });
    }
  });

  describe("stop", () => {
    it("changes the state alone, held or not", async () => {
      for (const item of [freeItem(store.newId()), heldItem(store.newId(), { owner: OTHER })]) {
        const id = await store.put(item);
        assert.deepEqual(await stop(store.table, id), { kind: "held", value: undefined });
        assert.deepEqual(await store.get(id), { ...item, desired_state: { S: "STOPPED" } });
        assert.equal((await store.unchanged(id, () => stop(store.table, id))).kind, "held");
      }
    });

    it("creates nothing", async () => {
      const id = store.newId();
      const outcome = await store.unchanged(id, () => stop(store.table, id));
      assert.deepEqual(outcome, { kind: "lost", reason: "gone", item: undefined });
    });
  });

  describe("deleteConnection", () => {
    it("removes a stopped connection that nobody holds, parked ones too", async () => {
      const parked = { lease_expires_at_ms: { N: String(NOW_MS + 600_000) } };
      for (const more of [{}, parked]) {
        const id = await store.put(freeItem(store.newId(), { desired_state: { S: "STOPPED" }, ...more }));
        assert.deepEqual(await deleteConnection(store.table, { connectionId: id, nowMs: NOW_MS, skewMs: 1000 }), {
          kind: "held",
          value: undefined,
        });
        assert.equal(await store.get(id), undefined);
        assert.equal(
          (await deleteConnection(store.table, { connectionId: id, nowMs: NOW_MS, skewMs: 1000 })).kind,
          "held",
          "already gone is success",
        );
      }
    });

    it("removes a stopped connection whose owner died and let its lease expire", async () => {
      for (const [agoMs, kind] of [
        [1001, "held"],
        [1000, "lost"],
      ] as const) {
        const expiry = { lease_expires_at_ms: { N: String(NOW_MS - agoMs) }, desired_state: { S: "STOPPED" } };
        const id = await store.put(heldItem(store.newId(), { owner: OTHER }, expiry));
        const outcome = await deleteConnection(store.table, { connectionId: id, nowMs: NOW_MS, skewMs: 1000 });
        assert.equal(outcome.kind, kind);
      }
    });

    it("refuses a started connection and a held one", async () => {
      const started = freeItem(store.newId());
      const held = heldItem(store.newId(), { owner: OTHER }, { desired_state: { S: "STOPPED" } });
      for (const [item, reason] of [
        [started, "started"],
        [held, "owned"],
      ] as const) {
        const id = await store.put(item);
        const outcome = await store.unchanged(id, () =>
          deleteConnection(store.table, { connectionId: id, nowMs: NOW_MS, skewMs: 1000 }),
        );
        assert.deepEqual(outcome, { kind: "lost", reason, item });
      }
    });
  });
}
