import type { ConsumedCapacity } from "@aws-sdk/client-dynamodb";

const WRITE_UNIT_BYTES = 1024;
const READ_UNIT_BYTES = 4096;

/** Units that one operation took, per table part. Indexes that took none are absent, as in DynamoDB's answer. */
export interface Units {
  readonly table: number;
  readonly indexes: ReadonlyMap<string, number>;
}

export function writeUnits(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / WRITE_UNIT_BYTES));
}

/** Half of it for an eventually consistent read; a read that finds nothing costs as the smallest. */
export function readUnits(bytes: number, consistent: boolean): number {
  return Math.max(1, Math.ceil(bytes / READ_UNIT_BYTES)) * (consistent ? 1 : 0.5);
}

export function tableUnits(units: number): Units {
  return { table: units, indexes: new Map() };
}

export function sumUnits(all: readonly Units[]): Units {
  const indexes = new Map<string, number>();
  for (const units of all) {
    for (const [name, count] of units.indexes) indexes.set(name, (indexes.get(name) ?? 0) + count);
  }
  return { table: all.reduce((sum, units) => sum + units.table, 0), indexes };
}

/** The ConsumedCapacity of an answer; undefined unless it was asked for. */
export function consumedCapacity(mode: string | undefined, table: string, units: Units): ConsumedCapacity | undefined {
  if (mode === undefined || mode === "NONE") return undefined;
  const total = [...units.indexes.values()].reduce((sum, count) => sum + count, units.table);
  const capacity: ConsumedCapacity = { TableName: table, CapacityUnits: total };
  if (mode !== "INDEXES") return capacity;
  const indexes = [...units.indexes].map(([name, count]) => [name, { CapacityUnits: count }] as const);
  return {
    ...capacity,
    Table: { CapacityUnits: units.table },
    ...(indexes.length === 0 ? {} : { GlobalSecondaryIndexes: Object.fromEntries(indexes) }),
  };
}
