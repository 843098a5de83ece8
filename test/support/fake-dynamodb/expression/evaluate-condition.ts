import { parseDecimal } from "../decimal.ts";
import { compareValues, equalValues, includesValue, type Item, type Value } from "../values.ts";
import type { Comparator, Condition, Operand } from "./condition.ts";
import { getPath } from "./paths.ts";

/** True if the item satisfies the condition; an absent item has no attributes. Types that cannot be compared are false. */
export function satisfies(condition: Condition, item: Item): boolean {
  const resolve = (operand: Operand): Value | undefined => resolveOperand(operand, item);
  switch (condition.kind) {
    case "and":
      return satisfies(condition.left, item) && satisfies(condition.right, item);
    case "or":
      return satisfies(condition.left, item) || satisfies(condition.right, item);
    case "not":
      return !satisfies(condition.condition, item);
    case "compare":
      return compare(condition.comparator, resolve(condition.left), resolve(condition.right));
    case "between": {
      const value = resolve(condition.operand);
      return compare(">=", value, resolve(condition.low)) && compare("<=", value, resolve(condition.high));
    }
    case "in": {
      const value = resolve(condition.operand);
      return condition.choices.some((choice) => compare("=", value, resolve(choice)));
    }
    case "exists":
      return (getPath(item, condition.path) !== undefined) === condition.expected;
    case "type":
      return getPath(item, condition.path)?.type === condition.type;
    case "begins-with":
      return beginsWith(resolve(condition.operand), resolve(condition.part));
    case "contains":
      return contains(resolve(condition.operand), resolve(condition.part));
  }
}

export function compare(comparator: Comparator, left: Value | undefined, right: Value | undefined): boolean {
  if (left === undefined || right === undefined) return comparator === "<>";
  if (comparator === "=") return equalValues(left, right);
  if (comparator === "<>") return !equalValues(left, right);
  const order = compareValues(left, right);
  if (order === undefined) return false;
  switch (comparator) {
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    case ">=":
      return order >= 0;
  }
}

export function beginsWith(value: Value | undefined, prefix: Value | undefined): boolean {
  if (value?.type === "S" && prefix?.type === "S") return value.value.startsWith(prefix.value);
  if (value?.type === "B" && prefix?.type === "B") {
    return value.value.subarray(0, prefix.value.length).equals(prefix.value);
  }
  return false;
}

function contains(value: Value | undefined, part: Value | undefined): boolean {
  if (value === undefined || part === undefined) return false;
  switch (value.type) {
    case "S":
      return part.type === "S" && value.value.includes(part.value);
    case "B":
      return part.type === "B" && value.value.includes(part.value);
    case "L":
    case "SS":
    case "NS":
    case "BS":
      return includesValue(value.value, part);
    default:
      return false;
  }
}

function resolveOperand(operand: Operand, item: Item): Value | undefined {
  switch (operand.kind) {
    case "path":
      return getPath(item, operand.path);
    case "value":
      return operand.value;
    case "size": {
      const size = sizeOf(resolveOperand(operand.of, item));
      return size === undefined ? undefined : { type: "N", value: parseDecimal(String(size)) };
    }
  }
}

/** Characters of a string, bytes of a binary, members of a container; nothing else has a size. */
function sizeOf(value: Value | undefined): number | undefined {
  switch (value?.type) {
    case "S":
    case "B":
    case "L":
    case "SS":
    case "NS":
    case "BS":
      return value.value.length;
    case "M":
      return value.value.size;
    default:
      return undefined;
  }
}
