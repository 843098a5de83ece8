import { CONNECTION } from "../../shared/connection/attributes.ts";
import { leaseOf, MalformedItemError, parseConnectionItem, type RawItem } from "../../shared/connection/item.ts";

/**
 * Why the index cannot or would never show this item, or undefined when its expiry is sound. Such an item is invisible to
 * the orphan query for ever, unless somebody mends it.
 *
 * @param furthestMs no lease and no park can end later
 */
export function expiryProblem(item: RawItem, furthestMs: number): string | undefined {
  const value = item[CONNECTION.expiresAtMs];
  if (value === undefined) return "lease_expires_at_ms: must be present";
  const { expiresAtMs } = leaseOf(item);
  if (expiresAtMs === undefined) return "lease_expires_at_ms: must be a number";
  if (expiresAtMs > furthestMs) return "lease_expires_at_ms: must not be further ahead than any lease or park can be";
  return undefined;
}

/** Why no worker can act on this item: the fields and their rules. Empty when one can. */
export function workProblems(item: RawItem): readonly string[] {
  const problems: string[] = [];
  try {
    parseConnectionItem(item);
  } catch (error) {
    if (!(error instanceof MalformedItemError)) throw error;
    problems.push(...error.problems);
  }
  // An acquire adds to the epoch, so it fails on anything but a number that it can read back.
  if (item[CONNECTION.epoch] !== undefined && leaseOf(item).epoch === undefined) {
    problems.push("lease_epoch must be a non-negative integer");
  }
  return problems;
}
