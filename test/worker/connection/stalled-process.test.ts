import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { SystemClock } from "../../../shared/clock.ts";
import { dialer } from "../../../worker/connection/socket.ts";
import { until } from "../../local/stack/until.ts";
import { SOCKET_SETTINGS } from "../support/dialled.ts";
import { Intake, INTAKE_SETTINGS } from "../support/intake.ts";
import { closeFrame, frame, OPCODE, RawUpstream } from "../support/raw-upstream.ts";

/** The machine's clock, whose wall time can leap as it does when a suspended machine wakes up. */
class LeapingWall extends SystemClock {
  leaptMs = 0;

  override wallMs(): number {
    return super.wallMs() + this.leaptMs;
  }
}

describe("a connection whose process stood still until after its deadline", () => {
  let upstream: RawUpstream;
  before(async () => {
    upstream = await RawUpstream.start();
  });
  after(() => upstream.stop());

  it("takes nothing and answers nothing of what has arrived meanwhile, and is given up", async () => {
    const clock = new LeapingWall();
    const intake = new Intake(clock, { dial: dialer(clock, SOCKET_SETTINGS) });
    await intake.seed("c", { ws_url: { S: upstream.url } });
    await intake.acquirer.tryAcquire("c");
    const connection = intake.connections.get("c");
    const peer = await upstream.socket();
    await until("it streams", () => connection?.state === "streaming");
    peer.socket.write(frame(OPCODE.text, "before"));
    const lane = await until("it is received", () =>
      intake.lanes[0]?.payloads.length === 1 ? intake.lanes[0] : undefined,
    );

    peer.socket.write(
      Buffer.concat([frame(OPCODE.ping), frame(OPCODE.text, "late"), frame(OPCODE.ping), closeFrame(1001)]),
    );
    clock.leaptMs = INTAKE_SETTINGS.leaseMs;
    await until("the socket is gone", () => peer.ended);
    await until("the lease is free", () => intake.lease("c").owner === undefined);
    assert.equal(connection?.state, "lost");
    assert.deepEqual(lane.payloads, ["before"]);
    assert.deepEqual(peer.opcodes(), []);
    assert.deepEqual(
      intake.journal.events("c").filter((event) => event !== "renewed"),
      ["held", "open", "fenced", "closed"],
    );
    await intake.end();
  });
});
