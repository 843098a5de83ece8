import type { Value } from "../values.ts";
import type { Path } from "./paths.ts";

export type Operand =
  | { readonly kind: "path"; readonly path: Path }
  | { readonly kind: "value"; readonly value: Value }
  | { readonly kind: "size"; readonly of: Operand };

export type Comparator = "=" | "<>" | "<" | "<=" | ">" | ">=";

export type Condition =
  | { readonly kind: "and" | "or"; readonly left: Condition; readonly right: Condition }
  | { readonly kind: "not"; readonly condition: Condition }
  | { readonly kind: "compare"; readonly comparator: Comparator; readonly left: Operand; readonly right: Operand }
  | { readonly kind: "between"; readonly operand: Operand; readonly low: Operand; readonly high: Operand }
  | { readonly kind: "in"; readonly operand: Operand; readonly choices: readonly Operand[] }
  | { readonly kind: "exists"; readonly path: Path; readonly expected: boolean }
  | { readonly kind: "type"; readonly path: Path; readonly type: string }
  | { readonly kind: "begins-with" | "contains"; readonly operand: Operand; readonly part: Operand };

/** The attributes that a condition looks at, by their top-level names. */
export function attributesOf(condition: Condition): string[] {
  return pathsOf(condition).map((path) => String(path[0]));
}

function pathsOf(condition: Condition): Path[] {
  switch (condition.kind) {
    case "and":
    case "or":
      return [...pathsOf(condition.left), ...pathsOf(condition.right)];
    case "not":
      return pathsOf(condition.condition);
    case "compare":
      return operandPaths(condition.left, condition.right);
    case "between":
      return operandPaths(condition.operand, condition.low, condition.high);
    case "in":
      return operandPaths(condition.operand, ...condition.choices);
    case "exists":
    case "type":
      return [condition.path];
    case "begins-with":
    case "contains":
      return operandPaths(condition.operand, condition.part);
  }
}

function operandPaths(...operands: readonly Operand[]): Path[] {
  return operands.flatMap((operand) => {
    if (operand.kind === "path") return [operand.path];
    return operand.kind === "size" ? operandPaths(operand.of) : [];
  });
}
