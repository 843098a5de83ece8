import { shuffled, type Random } from "../../shared/random.ts";
import { seededRandom } from "../run/seeded-random.ts";
import type { NetworkEffect } from "./proxy/effect.ts";

export const PROCESS_KINDS = ["crash", "kill", "term", "freeze"] as const;
export type ProcessKind = (typeof PROCESS_KINDS)[number];

/** Where a proxy stands. `rank`: whose it is, from 0: the tasks in order of what they hold when the fault begins. */
export type Place =
  | { readonly at: "upstream"; /** Of the connections. */ readonly share: number }
  | { readonly at: "dynamodb" | "sqs"; readonly rank: number }
  /** Between the functions and both. */
  | { readonly at: "functions" };

/** What is done. */
export type Deed =
  | { readonly does: "process"; readonly kind: ProcessKind; readonly rank: number }
  | { readonly does: "network"; readonly effect: NetworkEffect; readonly place: Place }
  /** All sockets of the upstream end, and for the time of the fault it refuses new ones. `graceful`: with a close frame. */
  | { readonly does: "restart"; readonly graceful: boolean }
  /** The upstream sends nothing at all. */
  | { readonly does: "stall" };

export type PlannedFault = Deed & {
  /** From 1, in order of time. */
  readonly id: number;
  /** After the beginning of the chaos. */
  readonly atMs: number;
  /** 0 for what is done in a moment. */
  readonly forMs: number;
};

type Drawn = Deed & { readonly atMs: number; readonly forMs: number };

export interface ChaosPlanOptions {
  readonly seed: number;
  readonly workers: number;
  /** How long faults may begin and last. */
  readonly lengthMs: number;
  /** How long a lease lasts: some faults must last longer, and some less. */
  readonly leaseMs: number;
}

/** What the deck holds: every kind comes again before any comes twice. */
const DECK = [
  ...PROCESS_KINDS,
  "latency",
  "slow",
  "black-hole out",
  "black-hole in",
  "black-hole both",
  "reset",
  "cut",
  "restart",
  "stall",
] as const;
type Card = (typeof DECK)[number];

const LEAD_MS = 2_000;
const STORM_MS = { least: 12_000, most: 26_000 };
const LULL_MS = { least: 2_000, most: 6_000 };
/** Faults of one storm; they may all be on at once. */
const FAULTS = { least: 4, most: 8 };
const SHARES = [1, 0.5, 0.2];
/** Of the faults that can outlast a lease. */
const LONG_SHARE = 0.25;
/** Beyond the lease, so that it surely expires while the fault is on. */
const BEYOND_LEASE_MS = 3_000;
/** The upstream is not away for so long that its connections are given up: that is another matter. */
const LONGEST_UPSTREAM_MS = 15_000;
const SHORT_MS = { least: 1_500, most: 8_000 };

/**
 * Draws the faults: storms, in which several are on at once, and lulls between them. The same options give the same plan.
 * None lasts beyond `lengthMs`.
 */
export function planChaos(options: ChaosPlanOptions): PlannedFault[] {
  const random = seededRandom(options.seed);
  const deal = dealer(random);
  const drawn: Drawn[] = [];
  for (let fromMs = LEAD_MS; fromMs + STORM_MS.least <= options.lengthMs; fromMs += between(LULL_MS, random)) {
    const untilMs = Math.min(options.lengthMs, fromMs + between(STORM_MS, random));
    drawn.push(leaseBreaker(options, fromMs, random));
    const count = Math.round(between(FAULTS, random)) - 1;
    for (let n = 0; n < count; n += 1) {
      const card = deal();
      const deed = deedFor(card, options.workers, random);
      const wishedMs = lengthOf(deed, options.leaseMs, random);
      // One that shall outlast a lease may outlast its storm, but never the plan.
      const forMs = Math.min(wishedMs, options.lengthMs - fromMs);
      const latestMs = Math.max(fromMs, Math.min(untilMs, options.lengthMs) - forMs);
      drawn.push({ ...deed, atMs: Math.round(fromMs + random() * (latestMs - fromMs)), forMs: Math.round(forMs) });
    }
    fromMs = untilMs;
  }
  return drawn.sort((a, b) => a.atMs - b.atMs).map((fault, at) => ({ ...fault, id: at + 1 }));
}

/** Each storm has one fault that costs a worker its leases, unless the plan ends before. */
function leaseBreaker({ workers, leaseMs, lengthMs }: ChaosPlanOptions, fromMs: number, random: Random): Drawn {
  const rank = Math.floor(random() * workers);
  const effect = { kind: "black-hole", direction: pick(["out", "in", "both"] as const, random) } as const;
  const deed: Deed =
    random() < 0.5
      ? { does: "process", kind: "freeze", rank }
      : { does: "network", effect, place: { at: "dynamodb", rank } };
  const atMs = fromMs + random() * SHORT_MS.least;
  const forMs = Math.min(leaseMs + BEYOND_LEASE_MS + between(SHORT_MS, random), lengthMs - atMs);
  return { ...deed, atMs: Math.round(atMs), forMs: Math.round(forMs) };
}

function dealer(random: Random): () => Card {
  let deck: Card[] = [];
  return () => {
    if (deck.length === 0) deck = shuffled(DECK, random);
    const card = deck.pop();
    if (card === undefined) throw new Error("the deck is empty");
    return card;
  };
}

function deedFor(card: Card, workers: number, random: Random): Deed {
  const rank = Math.floor(random() * workers);
  switch (card) {
    case "crash":
    case "kill":
    case "term":
    case "freeze":
      return { does: "process", kind: card, rank };
    case "restart":
      return { does: "restart", graceful: random() < 0.5 };
    case "stall":
      return { does: "stall" };
    default: {
      const place = placeFor(rank, random);
      return { does: "network", effect: effectFor(card, place, random), place };
    }
  }
}

function placeFor(rank: number, random: Random): Place {
  const drawn = random();
  if (drawn < 0.4) return { at: "dynamodb", rank };
  if (drawn < 0.8) return { at: "upstream", share: pick(SHARES, random) };
  return drawn < 0.9 ? { at: "sqs", rank } : { at: "functions" };
}

type NetworkCard = Exclude<Card, ProcessKind | "restart" | "stall">;

function effectFor(card: NetworkCard, { at }: Place, random: Random): NetworkEffect {
  switch (card) {
    case "latency":
      return {
        kind: "latency",
        latencyMs: Math.round(between({ least: 30, most: 600 }, random)),
        jitterMs: Math.round(between({ least: 0, most: 500 }, random)),
      };
    case "slow": {
      const range = at === "upstream" ? { least: 500, most: 4_000 } : { least: 4_000, most: 40_000 };
      return { kind: "slow", bytesPerSecond: Math.round(between(range, random)) };
    }
    case "black-hole out":
      return { kind: "black-hole", direction: "out" };
    case "black-hole in":
      return { kind: "black-hole", direction: "in" };
    case "black-hole both":
      return { kind: "black-hole", direction: "both" };
    case "reset":
      return { kind: "reset", everyMs: Math.round(between({ least: 500, most: 3_000 }, random)) };
    case "cut":
      return { kind: "cut" };
  }
}

function lengthOf(deed: Deed, leaseMs: number, random: Random): number {
  const shortMs = between(SHORT_MS, random);
  const longMs = leaseMs + BEYOND_LEASE_MS + shortMs;
  const long = random() < LONG_SHARE;
  switch (deed.does) {
    case "process":
      return deed.kind === "freeze" ? (long ? longMs : shortMs) : 0;
    case "network":
      if (deed.place.at === "upstream") return long ? LONGEST_UPSTREAM_MS : shortMs;
      return long ? longMs : shortMs;
    case "restart":
    case "stall":
      return shortMs;
  }
}

function between({ least, most }: { readonly least: number; readonly most: number }, random: Random): number {
  return least + random() * (most - least);
}

function pick<T>(items: readonly T[], random: Random): T {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new RangeError("there must be something to pick from");
  return item;
}
