import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { until } from "../../local/stack/until.ts";
import { Fleet } from "../support/fleet.ts";
import { closeFrame, frame, OPCODE, RawUpstream } from "../support/raw-upstream.ts";

describe("a worker that is suspended beyond its lease and wakes up", () => {
  let fleet: Fleet;
  let upstream: RawUpstream;
  before(async () => {
    [fleet, upstream] = await Promise.all([Fleet.start(), RawUpstream.start()]);
  });
  after(async () => {
    await fleet.stop();
    await upstream.stop();
  });

  it("finds itself fenced: it sends nothing, stores nothing that came after its deadline, and leaves the new owner alone", async () => {
    const first = fleet.spawn();
    await fleet.connect("c", upstream.url);
    await first.streaming(1);
    const peer = await upstream.socket(0);
    peer.socket.write(frame(OPCODE.text, "before"));
    await until("it is stored", async () => (await fleet.stored("c")).length === 1);
    const { epoch = 0n } = await fleet.lease("c");

    const pid = await first.workerPid();
    process.kill(pid, "SIGSTOP");
    const second = fleet.spawn();
    await until("the lease has expired", async () => ((await fleet.lease("c")).expiresAtMs ?? 0) < Date.now() - 1500);
    // All of this is there, unread, when the worker wakes up.
    peer.socket.write(
      Buffer.concat([frame(OPCODE.ping), frame(OPCODE.text, "too late"), frame(OPCODE.ping), closeFrame(1001)]),
    );
    await fleet.queues.hint("c");
    await second.streaming(1);
    assert.equal((await fleet.lease("c")).epoch, epoch + 1n);
    const { owner } = await fleet.lease("c");
    const next = await upstream.socket(1);
    next.socket.write(frame(OPCODE.text, "for the new owner"));

    process.kill(pid, "SIGCONT");
    await until("it has fenced itself", () => first.journal("fenced").length === 1);
    await until("its socket is gone", () => peer.ended);
    await until("it holds nothing", async () => (await first.health()).body["connections"] === 0);
    assert.deepEqual(peer.opcodes(), [], "not a frame");

    await until("the new owner's message is stored", async () => (await fleet.stored("c")).length === 2);
    assert.deepEqual(
      (await fleet.stored("c")).map(({ payload }) => payload),
      ["before", "for the new owner"],
    );
    assert.deepEqual([(await fleet.lease("c")).owner, (await fleet.lease("c")).epoch], [owner, epoch + 1n]);

    for (const one of [first, second]) one.signal("SIGTERM");
    await until("the new owner closes", () => next.opcodes().includes(OPCODE.close));
    next.socket.end(closeFrame(1000));
    assert.equal((await second.exited).code, 0);
    assert.equal((await first.exited).code, 0);
    assert.equal((await fleet.stored("c")).length, 2);
  });
});
