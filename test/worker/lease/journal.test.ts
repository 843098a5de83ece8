import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { readJournal } from "../../../local/audit/journal.ts";
import { Deadline } from "../../../shared/lease/index.ts";
import { Holding } from "../../../worker/lease/holding.ts";
import { FileJournal, type OwnershipEvent } from "../../../worker/lease/journal.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

describe("the ownership journal", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "ws-fleet-journal-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it("is read by the audit as it was written, line by line, before it is closed", async () => {
    const clock = new VirtualClock({ monotonicMs: 1000 });
    const file = path.join(folder, "journal.jsonl");
    const journal = new FileJournal(file, clock);
    const holder = { connectionId: "c-ü", owner: "task-1", epoch: 1_767_225_601n };
    const holding = new Holding(holder, Deadline.startingNow(clock, 17_000), 0);
    const common = { task: "task-1", connectionId: "c-ü", epoch: 1_767_225_601 };
    const events: OwnershipEvent[] = ["held", "open", "renewed", "closed", "released", "parked", "lost", "fenced"];
    for (const event of events) {
      journal.record(event, holding, event === "open" ? { localPort: 40_001 } : {});
      await clock.advance(10);
    }
    const usage = {
      requests: 3,
      readUnits: 1.5,
      writeUnits: 9,
      leaseWriteUnits: 6,
      rssBytes: 1e8,
      cpuMs: 12.5,
      oldestPendingMs: 7,
    };
    journal.recordUsage(usage);

    const read = await readJournal(file);
    assert.deepEqual(
      read.lines,
      events.map((event, n) => ({
        ...common,
        t: 1000 + 10 * n,
        event,
        ...(event === "held" || event === "renewed" ? { deadline: 18_000 } : {}),
        ...(event === "open" ? { localPort: 40_001 } : {}),
      })),
    );
    assert.deepEqual(
      read.usage.map(({ requests, cpuMs }) => [requests, cpuMs]),
      [[3, 12.5]],
    );
    journal.close();
  });

  it("goes on in a file that is already there", async () => {
    const clock = new VirtualClock();
    const file = path.join(folder, "again.jsonl");
    const holding = new Holding({ connectionId: "c", owner: "t", epoch: 1n }, Deadline.startingNow(clock, 1), 0);
    for (let life = 0; life < 2; life++) {
      const journal = new FileJournal(file, clock);
      journal.record("held", holding);
      journal.close();
    }
    assert.equal((await readJournal(file)).lines.length, 2);
  });
});
