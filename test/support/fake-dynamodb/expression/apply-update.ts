import { addDecimals, negated, parseDecimal, type Decimal } from "../decimal.ts";
import { validationError } from "../errors.ts";
import type { Item, Value } from "../values.ts";
import { getPath, removePath, setPath, type Path } from "./paths.ts";
import type { SetOperand, SetSource, Update } from "./update.ts";

/** The item after the update. Every source is read from the item as it was before, so `SET a = b, b = a` swaps. */
export function applyUpdate(before: Item, update: Update): Item {
  let item = before;
  const assignments = [
    ...update.set.map(({ path, source }) => ({ path, value: resolveSource(source, before) })),
    ...update.add.map(({ path, value }) => ({ path, value: sum(getPath(before, path) ?? ZERO, value, "plus") })),
  ];
  for (const { path, value } of assignments) item = setPath(item, path, value);
  // Positions are those of the item before: from the last to the first, no removal moves one that is still to come.
  for (const path of update.remove.toSorted(lastPositionsFirst)) item = removePath(item, path);
  return item;
}

const ZERO: Value = { type: "N", value: parseDecimal("0") };

function resolveSource(source: SetSource, item: Item): Value {
  if (!("left" in source)) return resolveOperand(source, item);
  return sum(resolveOperand(source.left, item), resolveOperand(source.right, item), source.kind);
}

function resolveOperand(operand: SetOperand, item: Item): Value {
  switch (operand.kind) {
    case "value":
      return operand.value;
    case "path": {
      const value = getPath(item, operand.path);
      if (value === undefined) {
        throw validationError("The provided expression refers to an attribute that does not exist in the item");
      }
      return value;
    }
    case "if-not-exists":
      return getPath(item, operand.path) ?? resolveOperand(operand.otherwise, item);
    case "list-append": {
      const [first, second] = [resolveOperand(operand.first, item), resolveOperand(operand.second, item)];
      if (first.type !== "L" || second.type !== "L") throw wrongType();
      return { type: "L", value: [...first.value, ...second.value] };
    }
  }
}

function sum(left: Value, right: Value, operator: "plus" | "minus"): Value {
  if (left.type !== "N" || right.type !== "N") throw wrongType();
  const addend: Decimal = operator === "plus" ? right.value : negated(right.value);
  return { type: "N", value: addDecimals(left.value, addend) };
}

function wrongType(): Error {
  return validationError("An operand in the update expression has an incorrect data type");
}

function lastPositionsFirst(a: Path, b: Path): number {
  const i = a.findIndex((step, at) => step !== b[at]);
  const [left, right] = [a[i], b[i]];
  return typeof left === "number" && typeof right === "number" ? right - left : 0;
}
