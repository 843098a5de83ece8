import { NO_MISTAKES, SMALL, type Bounds, type RequestKind, type WorkerMistakes, type WriteInput } from "./bounds.ts";
import type { Rule } from "./rules.ts";

/** A mistake that the protocol could have, and a rule that it breaks. */
export interface PlantedFault {
  readonly name: string;
  /** Only this rule is asked: the search has to find this very consequence, not an earlier sign of the mistake. */
  readonly breaks: Rule;
  readonly bounds: Bounds;
}

/** No request may be late, and no producer interferes, unless the fault needs it: the fewer, the shorter the search. */
const BASE: Bounds = { ...SMALL, unreduced: true, producer: false, lateRequests: 0, sentPerTick: 1 };

/** Both clocks are off by the skew, in opposite directions. */
const OPPOSITE = { aheadTicks: 2 * SMALL.skewTicks };

function mistake(...names: readonly (keyof WorkerMistakes)[]): WorkerMistakes {
  return { ...NO_MISTAKES, ...Object.fromEntries(names.map((name) => [name, true])) };
}

/** Replaces a part of the condition, or all of it; a part that is not there any more is an error. */
function condition(
  kinds: readonly RequestKind[],
  part: string | undefined,
  by: string,
  unused: readonly string[] = [],
) {
  return (kind: RequestKind, input: WriteInput): void => {
    if (!kinds.includes(kind)) return;
    const { ConditionExpression: before = "" } = input;
    if (part !== undefined && !before.includes(part)) throw new Error(`${kind} has no condition ${part}`);
    const after = part === undefined ? by : before.replace(part, by);
    input.ConditionExpression = after === "" ? undefined : after;
    without(input, unused);
  };
}

function without(input: WriteInput, names: readonly string[]): void {
  const values = Object.entries(input.ExpressionAttributeValues ?? {}).filter(([name]) => !names.includes(name));
  input.ExpressionAttributeValues = values.length === 0 ? undefined : Object.fromEntries(values);
}

const HOLDER = "lease_owner = :me AND lease_epoch = :mine";
const HOLDERS = ["renew", "release", "park"] as const;
const WITHOUT_EPOCH = condition(HOLDERS, " AND lease_epoch = :mine", "", [":mine"]);
const NOT_BACKWARDS = " AND (attribute_not_exists(lease_expires_at_ms) OR lease_expires_at_ms <= :expires)";

export const PLANTED_FAULTS: readonly PlantedFault[] = [
  {
    name: "a renewal asks for no epoch",
    breaks: "last-seq-falls",
    bounds: {
      ...BASE,
      lateRequests: 1,
      checkpoints: true,
      tamper: condition(["renew"], " AND lease_epoch = :mine", "", [":mine"]),
    },
  },
  {
    name: "no holder's write asks for an epoch",
    breaks: "one-actor",
    bounds: { ...BASE, lateRequests: 1, tamper: WITHOUT_EPOCH },
  },
  {
    name: "the deadline counts from the answer",
    breaks: "one-actor",
    bounds: { ...BASE, mistakes: mistake("deadlineFromAnswer") },
  },
  {
    name: "a renewal without an answer extends the deadline",
    breaks: "one-actor",
    bounds: { ...BASE, mistakes: mistake("extendsUnanswered") },
  },
  {
    name: "no margin, and clocks off by the skew in opposite directions",
    breaks: "one-actor",
    bounds: { ...BASE, ...OPPOSITE, marginTicks: 0 },
  },
  {
    name: "an acquire leaves nothing to the skew",
    breaks: "one-actor",
    bounds: { ...BASE, ...OPPOSITE, acquireSkewTicks: 0 },
  },
  {
    name: "a release asks for nothing",
    breaks: "one-actor",
    bounds: { ...BASE, lateRequests: 1, tamper: condition(["release"], undefined, "", [":me", ":mine"]) },
  },
  {
    name: "a holder's write may create the item",
    breaks: "creates-item",
    bounds: {
      ...BASE,
      lateRequests: 1,
      producer: true,
      tamper: condition(["release"], HOLDER, `attribute_not_exists(lease_owner) OR (${HOLDER})`),
    },
  },
  {
    name: "a renewal must find an expiry other than the one it sends, so that its own success refuses it",
    breaks: "stops-without-reason",
    bounds: {
      ...BASE,
      tamper: condition(["renew"], "lease_expires_at_ms <= :expires", "lease_expires_at_ms < :expires"),
    },
  },
  {
    name: "a renewal asks nothing of the expiry, so that a late one shortens the lease",
    breaks: "expiry-falls",
    bounds: { ...BASE, lateRequests: 1, tamper: condition(["renew"], NOT_BACKWARDS, "") },
  },
  {
    name: "the first epoch of an item is always 1",
    breaks: "epoch-falls",
    bounds: {
      ...BASE,
      producer: true,
      tamper: (kind, input) => {
        if (kind === "acquire")
          input.ExpressionAttributeValues = { ...input.ExpressionAttributeValues, ":epochSeed": { N: "0" } };
      },
    },
  },
  {
    name: "a request without an answer counts as a loss",
    breaks: "stops-without-reason",
    bounds: { ...BASE, mistakes: mistake("unknownIsLost") },
  },
  {
    name: "an item under the own name counts as the own success, whatever expiry it shows",
    breaks: "one-actor",
    // A lease that is long enough for a life of it to be old, and not so old that it is about to end anyway.
    bounds: { ...BASE, ...OPPOSITE, leaseTicks: 5, mistakes: mistake("anyExpiryIsMine") },
  },
  {
    name: "a hint counts as ownership",
    breaks: "one-actor",
    bounds: { ...BASE, mistakes: mistake("hintIsOwnership") },
  },
  {
    name: "a holder acts until its release is confirmed",
    breaks: "one-actor",
    bounds: { ...BASE, mistakes: mistake("actsUntilReleased") },
  },
  {
    name: "a START makes a held lease free",
    breaks: "one-actor",
    bounds: { ...BASE, producer: true, tamper: condition(["start"], "attribute_not_exists(lease_owner) AND ", "") },
  },
  {
    name: "a delete does not ask for an end of the lease",
    breaks: "one-actor",
    bounds: {
      ...BASE,
      producer: true,
      tamper: condition(["delete"], " AND (attribute_not_exists(lease_owner) OR lease_expires_at_ms < :ended)", "", [
        ":ended",
      ]),
    },
  },
  {
    name: "the release of a dead task's leases trusts the index",
    breaks: "one-actor",
    bounds: { ...BASE, tamper: condition(["release-of"], undefined, "attribute_exists(connection_id)", [":deadTask"]) },
  },
  {
    name: "an acquire takes only what was given back",
    breaks: "dark-for-ever",
    bounds: {
      ...BASE,
      tamper: condition(
        ["acquire"],
        "lease_expires_at_ms < :takeable",
        "(lease_expires_at_ms < :takeable AND attribute_not_exists(lease_owner))",
      ),
    },
  },
  {
    name: "a holder does not look at what its renewals bring",
    breaks: "dark-for-ever",
    bounds: { ...BASE, unreduced: false, producer: true, mistakes: mistake("ignoresStop") },
  },
];
