import { validationError } from "../errors.ts";
import type { KeyAttribute, KeyShape } from "../schema.ts";
import type { Value } from "../values.ts";
import type { Condition, Operand } from "./condition.ts";
import { parseCondition } from "./parse-condition.ts";
import type { Placeholders } from "./placeholders.ts";

/** A Query's key condition: one partition, and what the sort key must satisfy. */
export interface KeyCondition {
  readonly hash: Value;
  readonly range: Condition | undefined;
}

/** Parses a key condition against the table's or index's key; ValidationException for everything a Query cannot do. */
export function parseKeyCondition(text: string, shape: KeyShape, placeholders: Placeholders): KeyCondition {
  const terms = termsOf(parseCondition(text, "KeyConditionExpression", placeholders));
  const known = [shape.hash.name, ...(shape.range === undefined ? [] : [shape.range.name])];
  const byAttribute = new Map<string, Condition>();
  for (const term of terms) {
    const name = attributeOf(term);
    if (!known.includes(name)) throw missed(known.find((key) => !byAttribute.has(key)) ?? name);
    if (byAttribute.has(name)) {
      throw validationError("KeyConditionExpressions must only contain one condition per key");
    }
    byAttribute.set(name, term);
  }
  const hash = byAttribute.get(shape.hash.name);
  const range = shape.range === undefined ? undefined : byAttribute.get(shape.range.name);
  if (hash === undefined) throw missed(shape.hash.name);
  if (hash.kind !== "compare" || hash.comparator !== "=" || hash.right.kind !== "value") throw notSupported();
  checkType(shape.hash, [hash.right]);
  if (shape.range !== undefined && range !== undefined) checkType(shape.range, rangeOperands(range));
  return { hash: hash.right.value, range };
}

function termsOf(condition: Condition): Condition[] {
  if (condition.kind === "and") return [...termsOf(condition.left), ...termsOf(condition.right)];
  if (condition.kind === "or" || condition.kind === "not") {
    const operator = condition.kind.toUpperCase();
    throw validationError(`Invalid operator used in KeyConditionExpression: ${operator}`);
  }
  return [condition];
}

function attributeOf(term: Condition): string {
  const operand =
    term.kind === "compare" ? term.left : term.kind === "between" || term.kind === "begins-with" ? term.operand : null;
  if (operand?.kind !== "path" || operand.path.length !== 1) throw notSupported();
  return String(operand.path[0]);
}

function rangeOperands(term: Condition): readonly Operand[] {
  switch (term.kind) {
    case "compare":
      if (term.comparator === "<>") throw notSupported();
      return [term.right];
    case "between":
      return [term.low, term.high];
    case "begins-with":
      return [term.part];
    default:
      throw notSupported();
  }
}

function checkType(attribute: KeyAttribute, operands: readonly Operand[]): void {
  for (const operand of operands) {
    if (operand.kind !== "value") throw notSupported();
    if (operand.value.type !== attribute.type) {
      throw validationError(
        "One or more parameter values were invalid: Condition parameter type does not match schema type",
      );
    }
  }
}

function missed(name: string): Error {
  return validationError(`Query condition missed key schema element: ${name}`);
}

function notSupported(): Error {
  return validationError("Query key condition not supported");
}
