import { hash32, stream32 } from "./hash.ts";
import { cutSegments } from "./segments.ts";
import type { Speech } from "./speeches.ts";
import { Transcript } from "./transcript.ts";
import type { FeedKind } from "./transcript.ts";

/** What a run speaks. The same options give the same connections, texts, positions and phases in every process. */
export interface CorpusOptions {
  readonly seed: number;
  readonly connections: number;
  /** How long the whole run speaks. */
  readonly seconds: number;
  /** Segments per second over all connections together. */
  readonly rate: number;
  /** Share (0 to 1) of the connections whose feed cannot replay. */
  readonly liveShare: number;
  /** Start of every connection id; default `talk`. */
  readonly idPrefix?: string;
}

export interface Corpus {
  readonly options: CorpusOptions;
  readonly transcripts: readonly Transcript[];
  find(connectionId: string): Transcript | undefined;
}

/** First position of the feeds whose positions a float cannot hold: 2^53 + 1. */
const BIG_BASE = 9_007_199_254_740_993n;
const SMALL_BASE = 1n;
/** Keeps the position ranges of two connections apart, so that a row in the wrong place cannot look right. */
const RANGE = 10_000_019n;

/**
 * Lays out a run: connection `i` speaks speech `i mod n` and goes on with the following ones; when there are more
 * connections than speeches, each further lap starts where the lap before stopped.
 *
 * Every second replaying connection has positions beyond 2^53. Positions rise by 1 to 3.
 *
 * @throws if an option is out of its range; the message names the option and the rule
 */
export function buildCorpus(speeches: readonly Speech[], options: CorpusOptions): Corpus {
  checkOptions(options, speeches.length);
  const { connections, seconds, rate, liveShare, seed } = options;
  const length = Math.ceil((rate * seconds) / connections);
  const intervalMs = (1000 * connections) / rate;
  const bodiesOf = cachedBodies(speeches);

  const transcripts = Array.from({ length: connections }, (_, index) => {
    const connectionId = connectionIdAt(index, options.idPrefix);
    const kind: FeedKind = Math.floor((index + 1) * liveShare) > Math.floor(index * liveShare) ? "live" : "replay";
    const replayOrdinal = index - Math.floor(index * liveShare);
    const base = (replayOrdinal % 2 === 1 ? BIG_BASE : SMALL_BASE) + BigInt(index) * RANGE;
    const lap = Math.floor(index / speeches.length);
    const hash = hash32(seed, connectionId);
    return new Transcript({
      connectionId,
      index,
      kind,
      intervalMs,
      phaseMs: (hash / 2 ** 32) * intervalMs,
      firstPosition: kind === "live" ? 1n : base,
      offsets: kind === "live" ? undefined : positionOffsets(hash, length),
      bodies: takeBodies(bodiesOf, speeches.length, index % speeches.length, lap * length, length),
    });
  });
  const byId = new Map(transcripts.map((transcript) => [transcript.connectionId, transcript]));
  return { options, transcripts, find: (connectionId) => byId.get(connectionId) };
}

export function connectionIdAt(index: number, idPrefix = "talk"): string {
  return `${idPrefix}-${String(index).padStart(5, "0")}`;
}

function checkOptions(options: CorpusOptions, speeches: number): void {
  const rules: readonly (readonly [string, unknown, boolean, string])[] = [
    ["seed", options.seed, Number.isSafeInteger(options.seed), "a whole number"],
    [
      "connections",
      options.connections,
      Number.isSafeInteger(options.connections) && options.connections > 0,
      "a whole number of at least 1",
    ],
    ["seconds", options.seconds, Number.isFinite(options.seconds) && options.seconds > 0, "greater than 0"],
    ["rate", options.rate, Number.isFinite(options.rate) && options.rate > 0, "greater than 0"],
    ["liveShare", options.liveShare, options.liveShare >= 0 && options.liveShare <= 1, "from 0 to 1"],
    ["speeches", speeches, speeches > 0, "at least one"],
    [
      "idPrefix",
      options.idPrefix,
      options.idPrefix === undefined || /^[\w.-]+$/u.test(options.idPrefix),
      "letters, digits, '.', '_' and '-' only",
    ],
  ];
  for (const [name, value, holds, rule] of rules) {
    if (!holds) throw new RangeError(`${name} must be ${rule}, got ${String(value)}`);
  }
}

/** Distance of each segment's position from the first one. */
function positionOffsets(seed: number, length: number): Uint32Array {
  const next = stream32(seed);
  const offsets = new Uint32Array(length);
  let offset = 0;
  for (let at = 1; at < length; at += 1) {
    offset += 1 + (next() % 3);
    offsets[at] = offset;
  }
  return offsets;
}

type BodiesOf = (speech: number) => readonly string[];

/** The part of a segment's JSON that does not depend on the connection, cut once per speech and only when needed. */
function cachedBodies(speeches: readonly Speech[]): BodiesOf {
  const cache = new Map<number, readonly string[]>();
  return (at) => {
    const cached = cache.get(at);
    if (cached !== undefined) return cached;
    const speech = speeches[at];
    if (speech === undefined) throw new RangeError(`speech ${at} is not one of ${speeches.length}`);
    const head = `"speaker":${JSON.stringify(speech.speaker)},"year":${speech.year},"text":`;
    const bodies = cutSegments(speech.text).map((text) => head + JSON.stringify(text));
    cache.set(at, bodies);
    return bodies;
  };
}

function takeBodies(bodiesOf: BodiesOf, speeches: number, first: number, skip: number, count: number): string[] {
  const taken: string[] = [];
  let toSkip = skip;
  for (let speech = first; taken.length < count; speech = (speech + 1) % speeches) {
    const bodies = bodiesOf(speech);
    if (toSkip >= bodies.length) toSkip -= bodies.length;
    else {
      for (const body of bodies.slice(toSkip, toSkip + count - taken.length)) taken.push(body);
      toSkip = 0;
    }
  }
  return taken;
}
