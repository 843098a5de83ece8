import type { ConsumedCapacity } from "@aws-sdk/client-dynamodb";
import { consumedCapacity, sumUnits, type Units } from "../capacity.ts";
import { throughputExceeded, validationError } from "../errors.ts";

/** Chooses the entries of a batch that are given back, by their position in the whole request. */
export type Unprocessed = (index: number) => boolean;

/** Splits a batch. DynamoDB never gives back all of it: then it throttles the whole request. */
export function splitBatch<T>(entries: readonly T[], unprocessed: Unprocessed): { taken: T[]; left: T[] } {
  const left = entries.filter((_, index) => unprocessed(index));
  if (left.length === entries.length) throw throughputExceeded();
  return { taken: entries.filter((_, index) => !unprocessed(index)), left };
}

/** ValidationException unless the batch holds between 1 and `most` entries, no table is empty, and no key repeats. */
export function checkBatch(sizes: readonly number[], most: number, keys: readonly string[]): void {
  if (sizes.length === 0 || sizes.includes(0) || keys.length > most) {
    throw validationError(
      "1 validation error detected: Value at 'requestItems' failed to satisfy constraint: Map value must satisfy " +
        `constraint: [Member must have length less than or equal to ${most}, ` +
        "Member must have length greater than or equal to 1]",
    );
  }
  if (new Set(keys).size < keys.length) throw validationError("Provided list of item keys contains duplicates");
}

/** One ConsumedCapacity per table, or undefined unless it was asked for. */
export function batchCapacity(
  mode: string | undefined,
  spent: readonly { readonly table: string; readonly units: Units }[],
): ConsumedCapacity[] | undefined {
  if (mode === undefined || mode === "NONE") return undefined;
  const tables = [...new Set(spent.map(({ table }) => table))];
  return tables.flatMap((table) => {
    const units = sumUnits(spent.filter((entry) => entry.table === table).map((entry) => entry.units));
    return consumedCapacity(mode, table, units) ?? [];
  });
}
