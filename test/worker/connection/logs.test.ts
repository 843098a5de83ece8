import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { recordingLogger } from "../../functions/support/log.ts";
import { Line } from "../support/line.ts";

/** A line whose log is kept. */
async function logged() {
  const logger = recordingLogger();
  const line = await Line.start({ logger });
  const who = { connection_id: "c", epoch: line.holding.epoch.toString() };
  /** What was said since the last call. */
  const said = () => logger.lines.splice(0) as unknown[];
  return { line, who, said };
}

describe("a connection's log names the connection and its epoch, and says", () => {
  it("that it is open, how it ended and what follows", async () => {
    const { line, who, said } = await logged();
    line.socket.open();
    assert.deepEqual(said(), [{ level: "info", message: "socket open", fields: who }]);
    line.socket.end({ code: 1013, reason: "later" });
    assert.deepEqual(said(), [
      { level: "info", message: "socket ended", fields: { ...who, end: "closed with 1013: later", verdict: "busy" } },
    ]);
  });

  it("why it is parked, for how long, and that it is", async () => {
    const { line, who, said } = await logged();
    line.socket.open();
    line.socket.send("one");
    said();
    line.lane.events.onRefused(7n, "too large");
    const last_error = "message 7 cannot be stored: too large";
    assert.deepEqual(said(), [
      { level: "warn", message: "connection parked", fields: { ...who, park_ms: 900_000, last_error } },
    ]);
    line.socket.end();
    await line.untilEnded();
    const last_seq = (line.holding.epoch * 1_000_000_000_000n + 1n).toString();
    assert.deepEqual(said(), [{ level: "info", message: "connection parked", fields: { ...who, last_seq } }]);
  });

  it("that its producer changed it, and that its producer stopped it", async () => {
    const { line, who, said } = await logged();
    await line.change({ ws_url: { S: "wss://new.test/" } });
    assert.deepEqual(said()[0], { level: "info", message: "settings changed: dialling anew", fields: who });
    await line.change({ desired_state: { S: "STOPPED" } });
    await line.untilEnded();
    assert.deepEqual(said(), [
      { level: "info", message: "connection stopped by its producer", fields: who },
      { level: "info", message: "connection released", fields: { ...who, last_seq: undefined } },
    ]);
  });

  it("why its lease is lost", async () => {
    const { line, who, said } = await logged();
    await line.heart.change("c", { lease_owner: { S: "other" } });
    await line.untilEnded();
    assert.deepEqual(said(), [
      {
        level: "warn",
        message: "lease lost: another epoch wrote, or the item is gone",
        fields: { ...who, reason: "owned" },
      },
    ]);
  });
});
