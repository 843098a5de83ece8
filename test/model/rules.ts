import type { Applied, Write } from "./store.ts";
import { acts, FREE, NOBODY, type Item, type State } from "./state.ts";

/** The invariants, by name. */
export const RULES = {
  "one-actor": "at most one worker acts on a connection",
  "acts-without-lease": "whoever acts is the one whom the item names, under the epoch that the item has",
  "epoch-falls": "lease_epoch never falls, and no acquire repeats one, also when the id is deleted and created again",
  "last-seq-falls": "last_seq never falls",
  "expiry-falls": "the expiry written under one epoch never falls",
  "writes-for-another": "a holder's write changes only what its own owner and epoch stand in",
  "creates-item": "no worker's write creates an item",
  "stops-without-reason": "a holder gives up only what another wrote, or what is gone",
  "dark-for-ever": "once faults have ended, a STARTED connection gets an acting owner and a STOPPED one loses it",
} as const;

export type Rule = keyof typeof RULES;

export const ALL_RULES: ReadonlySet<Rule> = new Set(Object.keys(RULES) as Rule[]);

/** What is wrong with a state as it is. */
export function judgeState(state: State, rules: ReadonlySet<Rule>): Rule | undefined {
  const [first, second] = state.workers;
  const firstActs = acts(first);
  const secondActs = acts(second);
  if (!firstActs && !secondActs) return undefined;
  if (firstActs && secondActs && rules.has("one-actor")) return "one-actor";
  if (!rules.has("acts-without-lease")) return undefined;
  if (firstActs && !namedBy(state.item, 0, first.hold?.epoch)) return "acts-without-lease";
  if (secondActs && !namedBy(state.item, 1, second.hold?.epoch)) return "acts-without-lease";
  return undefined;
}

/** What is wrong with a write, judged by its effect. */
export function judgeWrite(
  write: Write,
  before: Item | undefined,
  { item: after, changed }: Applied,
  topEpoch: number,
  rules: ReadonlySet<Rule>,
): Rule | undefined {
  if (!changed) return undefined;
  const broken: Rule[] = [];
  if (write.kind === "acquire" || write.kind === "renew" || write.kind === "release" || write.kind === "park") {
    if (before === undefined) broken.push("creates-item");
    else if (write.kind !== "acquire" && !namedBy(before, write.owner, write.epoch)) broken.push("writes-for-another");
  }
  if (after !== undefined && after.epoch !== 0) {
    if (after.epoch < topEpoch && after.epoch !== before?.epoch) broken.push("epoch-falls");
    if (write.kind === "acquire" && after.epoch <= topEpoch) broken.push("epoch-falls");
  }
  if (before !== undefined && after !== undefined) {
    if (after.seq < before.seq) broken.push("last-seq-falls");
    const sameHolding = before.owner !== NOBODY && after.owner === before.owner && after.epoch === before.epoch;
    if (sameHolding && fell(before.expires, after.expires)) broken.push("expiry-falls");
  }
  return broken.find((rule) => rules.has(rule));
}

/** The item names this owner under this epoch. */
export function namedBy(item: Item | undefined, owner: number, epoch: number | undefined): boolean {
  return item !== undefined && item.owner === owner && item.epoch === epoch;
}

function fell(before: number, after: number): boolean {
  return after < before || (after === FREE && before !== FREE);
}
