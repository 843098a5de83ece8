import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compareLive } from "../../local/audit/compare-live.ts";
import type { Fault, LiveComparison } from "../../local/audit/compare-live.ts";
import { compareReplay } from "../../local/audit/compare.ts";
import type { ReplayComparison } from "../../local/audit/compare.ts";
import { percentiles } from "../../local/audit/percentiles.ts";
import type { StoredMessage } from "../../local/audit/read-messages.ts";
import type { SocketRecord } from "../../local/upstream/record.ts";
import { liveRecord, liveRows, range, replayRows, row, socket, transcriptOf } from "./helpers/rows.ts";

describe("percentiles", () => {
  it("takes the nearest rank, in any order, and has none of nothing", () => {
    assert.deepEqual(percentiles([]), { n: 0, p50: null, p99: null, max: null });
    assert.deepEqual(percentiles([7]), { n: 1, p50: 7, p99: 7, max: 7 });
    assert.deepEqual(percentiles([10, 9, 2, 1]), { n: 4, p50: 2, p99: 10, max: 10 });
    assert.deepEqual(percentiles(range(1, 201).reverse()), { n: 200, p50: 100, p99: 198, max: 200 });
    assert.throws(() => percentiles([1, NaN]), /every value must be a finite number, got NaN/);
  });
});

describe("compareReplay", () => {
  const transcript = transcriptOf("replay");
  const counts = ({ examples: _examples, ...rest }: ReplayComparison): object => rest;
  const good = { sent: 15, stored: 15, missing: 0, duplicated: 0, differing: 0 };

  it("accepts exactly what was sent", () => {
    assert.equal(transcript.length, 20);
    const result = compareReplay(transcript, 15, replayRows(transcript, range(0, 15)));
    assert.deepEqual(result, { ...good, examples: [] });
    assert.deepEqual(counts(compareReplay(transcript, 0, [])), { ...good, sent: 0, stored: 0 });
  });

  it("counts what is missing, at either end and in the middle", () => {
    const rows = replayRows(transcript, [...range(1, 6), ...range(8, 14)]);
    const result = compareReplay(transcript, 15, rows);
    assert.deepEqual(counts(result), { ...good, stored: 11, missing: 4 });
    assert.deepEqual(result.examples[0], `talk-00001: position ${transcript.positionAt(0).toString()} is missing`);
  });

  it("counts a payload that was changed, swapped or stored as binary", () => {
    const rows = replayRows(transcript, range(0, 12));
    rows.push(row(transcript.positionAt(12), `${transcript.payloadAt(12)} `));
    rows.push(row(transcript.positionAt(13), transcript.payloadAt(14)));
    rows.push(row(transcript.positionAt(14), Buffer.from(transcript.payloadAt(14))));
    assert.deepEqual(counts(compareReplay(transcript, 15, rows)), { ...good, stored: 12, differing: 3 });
  });

  it("counts a segment stored a second time under a rounded position", () => {
    const rows = replayRows(transcript, range(0, 15));
    const odd = range(0, 15).find((segment) => {
      const position = transcript.positionAt(segment);
      const rounded = BigInt(Number(position));
      return rounded !== position && transcript.segmentAt(rounded) === undefined;
    });
    assert.ok(odd !== undefined, "the transcript has a position that a float rounds to none of its own");
    rows.push(row(BigInt(Number(transcript.positionAt(odd))), transcript.payloadAt(odd)));
    assert.deepEqual(counts(compareReplay(transcript, 15, rows)), { ...good, duplicated: 1 });

    const moved = rows.filter(({ seq }) => seq !== transcript.positionAt(odd));
    const result = compareReplay(transcript, 15, moved);
    assert.deepEqual(counts(result), { ...good, stored: 14, missing: 1, differing: 1 });
  });

  it("counts rows that were never sent", () => {
    const rows = [
      ...replayRows(transcript, range(0, 16)),
      row(transcript.positionAt(0) - 1n, "{}"),
      row(transcript.positionAt(19) + 5n, '{"seq":1,"speaker":"nobody"}'),
    ];
    assert.deepEqual(counts(compareReplay(transcript, 15, rows)), { ...good, differing: 3 });
  });
});

describe("compareLive", () => {
  const transcript = transcriptOf("live");
  const id = transcript.connectionId;
  const compare = (
    sockets: readonly SocketRecord[],
    rows: readonly StoredMessage[],
    faults: readonly Fault[] = [],
  ): LiveComparison => compareLive({ transcript, record: liveRecord(transcript, sockets), rows, faults, graceMs: 150 });
  const verdict = (result: LiveComparison): object => ({
    gapSegments: result.gapSegments,
    missing: result.missing,
    duplicated: result.duplicated,
    disordered: result.disordered,
    differing: result.differing,
  });
  const good = { gapSegments: 0, missing: 0, duplicated: 0, disordered: 0, differing: 0 };

  // Two holdings, closed orderly: nobody listens at segments 8 to 11 (800 to 1,100 ms).
  const handOver = [
    socket({ socket: 1, openedAtMs: 0, closedAtMs: 800 }),
    socket({ socket: 2, openedAtMs: 1150 }),
  ] as const;
  const handOverRows = [...liveRows(transcript, 1, range(0, 8)), ...liveRows(transcript, 2, range(12, 20))];

  it("accepts what is complete", () => {
    const result = compare([socket({ socket: 1, openedAtMs: 0 })], liveRows(transcript, 1, range(0, 20)));
    assert.deepEqual(
      { spoken: result.spoken, stored: result.stored, gaps: result.gaps, ...verdict(result) },
      { spoken: 20, stored: 20, gaps: 0, ...good },
    );
    assert.deepEqual(result.examples, []);
  });

  it("counts as one gap what was spoken to nobody", () => {
    const result = compare(handOver, handOverRows);
    assert.deepEqual(verdict(result), { ...good, gapSegments: 4 });
    assert.deepEqual(result.runs, [{ firstSegment: 8, lastSegment: 11, cause: "nobody" }]);
    assert.equal(result.gaps, 1);
  });

  it("counts as missing what an orderly closed socket received and nobody stored", () => {
    const rows = handOverRows.filter(({ payload }) => payload !== transcript.payloadAt(7));
    const result = compare(handOver, rows);
    assert.deepEqual(verdict(result), { ...good, gapSegments: 4, missing: 1 });
    assert.match(result.examples[0]!, /segment 7 went to an open socket/);
  });

  const killed: Fault = { kind: "kill", atMs: 790, connections: new Set([id]) };

  it("excuses the tail that a killed worker had not stored, within the grace", () => {
    // Segments 7 (700 ms) is within 150 ms of the kill.
    const rows = handOverRows.filter(({ payload }) => payload !== transcript.payloadAt(7));
    const result = compare(handOver, rows, [killed]);
    assert.deepEqual(verdict(result), { ...good, gapSegments: 5 });
    assert.deepEqual(result.runs, [{ firstSegment: 7, lastSegment: 11, cause: "fault" }]);
  });

  it("does not excuse what was received longer before the fault", () => {
    const lost = [6, 7].map((segment) => transcript.payloadAt(segment));
    const rows = handOverRows.filter(({ payload }) => !lost.includes(payload as string));
    assert.deepEqual(verdict(compare(handOver, rows, [killed])), { ...good, gapSegments: 5, missing: 1 });
  });

  it("does not excuse a hole before the last stored segment", () => {
    const late: Fault = { ...killed, atMs: 750 };
    const rows = handOverRows.filter(({ payload }) => payload !== transcript.payloadAt(6));
    assert.deepEqual(verdict(compare(handOver, rows, [late])), { ...good, gapSegments: 4, missing: 1 });
  });

  it("does not excuse by a fault of another connection, another socket or another time", () => {
    const rows = handOverRows.filter(({ payload }) => payload !== transcript.payloadAt(7));
    const others: Fault[] = [
      { ...killed, connections: new Set(["talk-00000"]) },
      { ...killed, remotePorts: new Set([40_002]) },
      { ...killed, atMs: 1200 },
      { ...killed, kind: "freeze", atMs: 100, untilMs: 300 },
    ];
    for (const fault of others) {
      assert.deepEqual(verdict(compare(handOver, rows, [fault])), { ...good, gapSegments: 4, missing: 1 });
    }
  });

  it("does not excuse a socket that was opened after the fault", () => {
    const rows = handOverRows.filter(({ payload }) => payload !== transcript.payloadAt(12));
    const fault: Fault = { ...killed, atMs: 1140 };
    const tail = handOverRows.filter(({ leaseEpoch }) => leaseEpoch === 1);
    assert.deepEqual(verdict(compare(handOver, tail, [fault])), { ...good, gapSegments: 4, missing: 8 });
    // Had the same fault come a moment later, it would have hit the socket …
    const inTime: Fault = { ...fault, atMs: 1160 };
    assert.equal(compare(handOver, tail, [inTime]).missing, 0);
    // … but for the socket's tail only.
    assert.equal(compare(handOver, rows, [inTime]).missing, 1);
  });

  it("excuses what a frozen worker alone received, but not what the next owner received too", () => {
    const sockets = [socket({ socket: 1, openedAtMs: 0, closedAtMs: 1600 }), socket({ socket: 2, openedAtMs: 1150 })];
    const frozen: Fault = { kind: "freeze", atMs: 590, untilMs: 1550, connections: new Set([id]) };
    const rows = [...liveRows(transcript, 1, range(0, 6)), ...liveRows(transcript, 2, range(12, 20))];
    const result = compare(sockets, rows, [frozen]);
    assert.deepEqual(verdict(result), { ...good, gapSegments: 6 });
    assert.deepEqual(result.runs, [{ firstSegment: 6, lastSegment: 11, cause: "fault" }]);

    const withoutOne = rows.filter(({ payload }) => payload !== transcript.payloadAt(13));
    assert.deepEqual(verdict(compare(sockets, withoutOne, [frozen])), { ...good, gapSegments: 6, missing: 1 });
  });

  it("counts a segment that two owners stored", () => {
    const sockets = [socket({ socket: 1, openedAtMs: 0, closedAtMs: 1000 }), socket({ socket: 2, openedAtMs: 800 })];
    const rows = [...liveRows(transcript, 1, range(0, 10)), ...liveRows(transcript, 2, range(8, 20))];
    assert.deepEqual(verdict(compare(sockets, rows)), { ...good, duplicated: 2 });
  });

  it("counts rows out of order", () => {
    const order = [...range(0, 5), 6, 5, ...range(7, 20)];
    const result = compare([socket({ socket: 1, openedAtMs: 0 })], liveRows(transcript, 1, order));
    assert.deepEqual(verdict(result), { ...good, disordered: 1 });
  });

  it("counts rows that hold what was never spoken", () => {
    const rows = liveRows(transcript, 1, range(0, 20));
    const changed = { ...rows[3]!, payload: transcript.payloadAt(3).replace("speaker", "orator") };
    const foreign = row(9_000_000_000_000n, '{"n":99,"speaker":"nobody"}');
    const result = compare([socket({ socket: 1, openedAtMs: 0 })], [...rows.with(3, changed), foreign]);
    assert.deepEqual(verdict(result), { ...good, differing: 2, missing: 1 });
  });

  it("does not accept a segment that is not spoken yet", () => {
    const record = liveRecord(transcript, [socket({ socket: 1, openedAtMs: 0 })]);
    const early = { ...record, spoken: record.spoken.slice(0, 10) };
    const rows = liveRows(transcript, 1, range(0, 11));
    const result = compareLive({ transcript, record: early, rows, faults: [], graceMs: 0 });
    assert.deepEqual(verdict(result), { ...good, differing: 1 });
  });
});
