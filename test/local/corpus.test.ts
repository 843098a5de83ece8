import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { buildCorpus } from "../../local/upstream/corpus.ts";
import type { CorpusOptions } from "../../local/upstream/corpus.ts";
import { cutSegments, MAX_SEGMENT_CHARS, MIN_SEGMENT_CHARS } from "../../local/upstream/segments.ts";
import { loadSpeeches } from "../../local/upstream/speeches.ts";

const speeches = loadSpeeches();
const options: CorpusOptions = { seed: 7, connections: 12, seconds: 10, rate: 60, liveShare: 0.25 };
const words = (text: string): string => text.split(/\s+/u).filter(Boolean).join(" ");

describe("cutSegments", () => {
  it("loses no word of any speech and keeps to the lengths", () => {
    assert.equal(speeches.length, 233);
    for (const { text, year } of speeches) {
      const segments = cutSegments(text);
      assert.equal(segments.join(" "), words(text), String(year));
      assert.ok(segments.every((segment) => segment.length <= MAX_SEGMENT_CHARS || !segment.includes(" ")));
      assert.ok(segments.slice(0, -1).every((segment) => segment.length >= MIN_SEGMENT_CHARS));
    }
  });

  it("ends a segment with its sentence and splits a long sentence behind a clause", () => {
    assert.deepEqual(cutSegments("Short. This sentence brings the whole to more than forty. Next"), [
      "Short. This sentence brings the whole to more than forty.",
      "Next",
    ]);
    const clause = `${"word ".repeat(20)}clause,`;
    assert.deepEqual(cutSegments(`${clause} ${"tail ".repeat(15)}end.`), [clause, `${"tail ".repeat(15)}end.`]);
  });

  it("passes on a word longer than a segment", () => {
    const long = "x".repeat(MAX_SEGMENT_CHARS + 20);
    assert.deepEqual(cutSegments(`before ${long} after`), ["before", long, "after"]);
  });
});

describe("buildCorpus", () => {
  it("gives every connection the same number of segments, spread over the run", () => {
    const corpus = buildCorpus(speeches, { ...options, rate: 61 });
    assert.equal(corpus.transcripts.length, 12);
    for (const transcript of corpus.transcripts) {
      assert.equal(transcript.length, Math.ceil((61 * 10) / 12));
      assert.equal(transcript.intervalMs, (1000 * 12) / 61);
      assert.ok(transcript.phaseMs >= 0 && transcript.phaseMs < transcript.intervalMs);
      assert.equal(corpus.find(transcript.connectionId), transcript);
    }
    assert.equal(corpus.transcripts.filter(({ kind }) => kind === "live").length, 3);
  });

  it("speaks the words of the speeches in their order, and marks the last segment", () => {
    const [first] = buildCorpus(speeches, options).transcripts;
    assert.ok(first);
    const payloads = Array.from(
      { length: first.length },
      (_, segment) => JSON.parse(first.payloadAt(segment)) as Spoken,
    );
    assert.ok(words(speeches[0]!.text).startsWith(payloads.map(({ text }) => text).join(" ")));
    assert.ok(payloads.every(({ speaker, year }) => speaker === speeches[0]!.speaker && year === speeches[0]!.year));
    assert.deepEqual(
      payloads.flatMap(({ last }, segment) => (last === true ? [segment] : [])),
      [first.length - 1],
    );
  });

  it("goes on with the next speech, and later laps with what is not spoken yet", () => {
    const two = [speeches[0]!, speeches[1]!];
    const spoken = [...cutSegments(two[0]!.text), ...cutSegments(two[1]!.text)];
    const corpus = buildCorpus(two, { ...options, connections: 3, rate: 300, seconds: 1, liveShare: 0 });
    const texts = corpus.transcripts.map((transcript) =>
      Array.from({ length: 100 }, (_, segment) => (JSON.parse(transcript.payloadAt(segment)) as Spoken).text),
    );
    const endless = [...spoken, ...spoken, ...spoken];
    assert.deepEqual(texts[0], endless.slice(0, 100));
    assert.deepEqual(texts[1], endless.slice(cutSegments(two[0]!.text).length).slice(0, 100));
    assert.deepEqual(texts[2], endless.slice(100, 200));
  });

  it("raises positions by 1 to 3, for some connections beyond what a float can hold, digit by digit", () => {
    const replay = buildCorpus(speeches, { ...options, liveShare: 0.5 }).transcripts.filter(
      ({ kind }) => kind === "replay",
    );
    const steps = new Set<bigint>();
    let beyond = 0;
    for (const transcript of replay) {
      if (transcript.positionAt(0) > 2n ** 53n) beyond += 1;
      for (let segment = 0; segment < transcript.length; segment += 1) {
        const position = transcript.positionAt(segment);
        assert.ok(transcript.payloadAt(segment).startsWith(`{"seq":${position.toString()},`));
        if (segment > 0) steps.add(position - transcript.positionAt(segment - 1));
      }
    }
    assert.deepEqual([...steps].sort(), [1n, 2n, 3n]);
    assert.equal(beyond, 3);
    assert.equal(replay.length, 6);
  });

  it("is the same for the same options and another for another seed", () => {
    const all = (seed: number): string[] =>
      buildCorpus(speeches, { ...options, seed }).transcripts.flatMap((transcript) => [
        String(transcript.phaseMs),
        ...Array.from({ length: transcript.length }, (_, segment) => transcript.payloadAt(segment)),
      ]);
    assert.deepEqual(all(1), all(1));
    assert.notDeepEqual(all(1), all(2));
  });

  it("finds segments by position as a plain search does", () => {
    for (const transcript of buildCorpus(speeches, options).transcripts) {
      const positions = Array.from({ length: transcript.length }, (_, segment) => transcript.positionAt(segment));
      for (let cursor = positions[0]! - 2n; cursor <= positions.at(-1)! + 2n; cursor += 1n) {
        const after = positions.findIndex((position) => position > cursor);
        assert.equal(transcript.firstAfter(cursor), after === -1 ? transcript.length : after);
        const at = positions.indexOf(cursor);
        assert.equal(transcript.segmentAt(cursor), at === -1 ? undefined : at);
      }
    }
  });

  it("names the option that is wrong and its rule", () => {
    const refused: [Partial<CorpusOptions>, RegExp][] = [
      [{ seed: 0.5 }, /seed must be a whole number, got 0.5/],
      [{ connections: 0 }, /connections must be a whole number of at least 1, got 0/],
      [{ seconds: -1 }, /seconds must be greater than 0, got -1/],
      [{ rate: NaN }, /rate must be greater than 0, got NaN/],
      [{ liveShare: 1.5 }, /liveShare must be from 0 to 1, got 1.5/],
      [{ idPrefix: "a/b" }, /idPrefix must be letters/],
    ];
    for (const [wrong, message] of refused) {
      assert.throws(() => buildCorpus(speeches, { ...options, ...wrong }), { name: "RangeError", message });
    }
    assert.throws(() => buildCorpus([], options), /speeches must be at least one/);
  });
});

interface Spoken {
  readonly speaker: string;
  readonly year: number;
  readonly text: string;
  readonly last?: boolean;
}
