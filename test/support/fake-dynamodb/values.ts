import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { compareDecimals, digitCount, formatDecimal, parseDecimal, type Decimal } from "./decimal.ts";
import { validationError } from "./errors.ts";

/** One stored value, parsed and immutable. `toSdk` builds fresh objects, so no caller ever shares state with the store. */
export type Value =
  | { readonly type: "S"; readonly value: string }
  | { readonly type: "N"; readonly value: Decimal }
  | { readonly type: "B"; readonly value: Buffer }
  | { readonly type: "BOOL"; readonly value: boolean }
  | { readonly type: "NULL" }
  | { readonly type: "M"; readonly value: ReadonlyMap<string, Value> }
  | { readonly type: "L"; readonly value: readonly Value[] }
  | { readonly type: "SS" | "NS" | "BS"; readonly value: readonly Value[] };

export type Item = ReadonlyMap<string, Value>;
export type SdkItem = Record<string, AttributeValue>;

/** Parses an AttributeValue as DynamoDB does; ValidationException for what it refuses. */
export function fromSdk(value: AttributeValue): Value {
  const given = Object.values(value as object).filter((member) => member !== undefined).length;
  if (given > 1) {
    throw validationError(
      "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes",
    );
  }
  if (value.S !== undefined) return { type: "S", value: value.S };
  if (value.N !== undefined) return { type: "N", value: parseDecimal(value.N) };
  if (value.B !== undefined) return { type: "B", value: Buffer.from(value.B) };
  if (value.BOOL !== undefined) return { type: "BOOL", value: value.BOOL };
  if (value.M !== undefined) return { type: "M", value: itemFromSdk(value.M) };
  if (value.L !== undefined) return { type: "L", value: value.L.map(fromSdk) };
  if (value.SS !== undefined)
    return setOf(
      "SS",
      value.SS.map((S) => fromSdk({ S })),
      "string",
    );
  if (value.NS !== undefined)
    return setOf(
      "NS",
      value.NS.map((N) => fromSdk({ N })),
      "number",
    );
  if (value.BS !== undefined)
    return setOf(
      "BS",
      value.BS.map((B) => fromSdk({ B })),
      "binary",
    );
  if (value.NULL === true) return { type: "NULL" };
  if (value.NULL === false) {
    throw validationError(
      "One or more parameter values were invalid: Null attribute value types must have the value of true",
    );
  }
  throw validationError("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes");
}

export function itemFromSdk(item: SdkItem): Item {
  return new Map(Object.entries(item).map(([name, value]) => [name, fromSdk(value)]));
}

export function toSdk(value: Value): AttributeValue {
  switch (value.type) {
    case "S":
      return { S: value.value };
    case "N":
      return { N: formatDecimal(value.value) };
    case "B":
      return { B: Uint8Array.from(value.value) };
    case "BOOL":
      return { BOOL: value.value };
    case "NULL":
      return { NULL: true };
    case "M":
      return { M: itemToSdk(value.value) };
    case "L":
      return { L: value.value.map(toSdk) };
    case "SS":
      return { SS: value.value.map((member) => toSdk(member).S ?? "") };
    case "NS":
      return { NS: value.value.map((member) => toSdk(member).N ?? "") };
    case "BS":
      return { BS: value.value.map((member) => toSdk(member).B ?? new Uint8Array()) };
  }
}

export function itemToSdk(item: Item): SdkItem {
  return Object.fromEntries([...item].map(([name, value]) => [name, toSdk(value)]));
}

export function equalValues(a: Value, b: Value): boolean {
  if (a.type === "NULL" || b.type === "NULL") return a.type === b.type;
  if (a.type === "M") return b.type === "M" && equalItems(a.value, b.value);
  if (a.type === "BOOL") return b.type === "BOOL" && a.value === b.value;
  if (a.type === "L") {
    return (
      b.type === "L" &&
      a.value.length === b.value.length &&
      a.value.every((member, i) => equalOptional(member, b.value[i]))
    );
  }
  if (a.type === "SS" || a.type === "NS" || a.type === "BS") {
    // Members are distinct, so equal sizes and one-way inclusion are enough.
    return a.type === b.type && a.value.length === b.value.length && a.value.every((m) => includesValue(b.value, m));
  }
  return compareValues(a, b) === 0;
}

export function equalItems(a: Item, b: Item): boolean {
  return a.size === b.size && [...a].every(([name, value]) => equalOptional(value, b.get(name)));
}

export function includesValue(members: readonly Value[], wanted: Value): boolean {
  return members.some((member) => equalValues(member, wanted));
}

/** Order within S (by UTF-8 bytes), N or B; undefined for two types, or a type without an order. */
export function compareValues(a: Value, b: Value): number | undefined {
  if (a.type === "N" && b.type === "N") return compareDecimals(a.value, b.value);
  if (a.type === "B" && b.type === "B") return Buffer.compare(a.value, b.value);
  if (a.type === "S" && b.type === "S") {
    return a.value === b.value ? 0 : Buffer.compare(Buffer.from(a.value), Buffer.from(b.value));
  }
  return undefined;
}

/** Bytes of an item as DynamoDB counts them towards capacity and the 400 KB limit: names and values. */
export function itemBytes(item: Item): number {
  let bytes = 0;
  for (const [name, value] of item) bytes += Buffer.byteLength(name) + valueBytes(value);
  return bytes;
}

const CONTAINER_OVERHEAD_BYTES = 3;

function valueBytes(value: Value): number {
  switch (value.type) {
    case "S":
      return Buffer.byteLength(value.value);
    case "N":
      return Math.ceil(digitCount(value.value) / 2) + (value.value.coefficient < 0n ? 2 : 1);
    case "B":
      return value.value.length;
    case "BOOL":
    case "NULL":
      return 1;
    case "M":
      return CONTAINER_OVERHEAD_BYTES + value.value.size + itemBytes(value.value);
    case "L":
      return value.value.reduce((bytes, member) => bytes + 1 + valueBytes(member), CONTAINER_OVERHEAD_BYTES);
    case "SS":
    case "NS":
    case "BS":
      return value.value.reduce((bytes, member) => bytes + valueBytes(member), 0);
  }
}

function setOf(type: "SS" | "NS" | "BS", members: Value[], noun: string): Value {
  if (members.length === 0) {
    throw validationError(`One or more parameter values were invalid: An ${noun} set  may not be empty`);
  }
  if (members.some((member, i) => includesValue(members.slice(0, i), member))) {
    throw validationError("One or more parameter values were invalid: Input collection contains duplicates.");
  }
  return { type, value: members };
}

function equalOptional(a: Value, b: Value | undefined): boolean {
  return b !== undefined && equalValues(a, b);
}
