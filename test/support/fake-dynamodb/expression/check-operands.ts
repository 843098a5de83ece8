import { compareValues } from "../values.ts";
import { formatDecimal } from "../decimal.ts";
import type { Operand } from "./condition.ts";
import { samePath, showPath } from "./paths.ts";
import type { ExpressionReader } from "./reader.ts";

/** DynamoDB refuses these by the expression's text and its placeholders alone, whatever the item holds. */

export function checkDistinct(reader: ExpressionReader, operator: string, left: Operand, right: Operand): void {
  if (left.kind === "path" && right.kind === "path" && samePath(left.path, right.path)) {
    throw reader.error(
      "The first operand must be distinct from the remaining operands for this operator or function; " +
        `operator: ${operator}, first operand: ${showPath(left.path)}`,
    );
  }
}

export function checkOrdered(reader: ExpressionReader, operator: string, operands: readonly Operand[]): void {
  checkLiterals(reader, `operator: ${operator}`, operands, ["S", "N", "B"]);
}

export function checkFunctionOperand(
  reader: ExpressionReader,
  name: string,
  operands: readonly Operand[],
  allowed: readonly string[],
): void {
  checkLiterals(reader, `operator or function: ${name}`, operands, allowed);
}

export function checkBetween(reader: ExpressionReader, low: Operand, high: Operand): void {
  checkOrdered(reader, "BETWEEN", [low, high]);
  if (low.kind !== "value" || high.kind !== "value") return;
  const order = compareValues(low.value, high.value);
  if (order === undefined) {
    throw reader.error(
      "The BETWEEN operator requires same data type for lower and upper bounds; " +
        `lower bound operand: ${show(low)}, upper bound operand: ${show(high)}`,
    );
  }
  if (order > 0) {
    throw reader.error(
      "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; " +
        `lower bound operand: ${show(low)}, upper bound operand: ${show(high)}`,
    );
  }
}

function checkLiterals(
  reader: ExpressionReader,
  where: string,
  operands: readonly Operand[],
  allowed: readonly string[],
): void {
  for (const operand of operands) {
    if (operand.kind === "value" && !allowed.includes(operand.value.type)) {
      throw reader.error(
        `Incorrect operand type for operator or function; ${where}, operand type: ${operand.value.type}`,
      );
    }
  }
}

function show(operand: Operand & { kind: "value" }): string {
  const { value } = operand;
  const text = value.type === "N" ? formatDecimal(value.value) : value.type === "S" ? value.value : "…";
  return `AttributeValue: {${value.type}:${text}}`;
}
