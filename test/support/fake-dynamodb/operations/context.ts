import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { conditionalCheckFailed, UnsupportedByFake } from "../errors.ts";
import type { Condition } from "../expression/condition.ts";
import { satisfies } from "../expression/evaluate-condition.ts";
import { parseCondition } from "../expression/parse-condition.ts";
import { Placeholders } from "../expression/placeholders.ts";
import type { Table } from "../table.ts";
import { itemToSdk, type Item } from "../values.ts";

/** What an operation works on. */
export interface Store {
  /** ValidationException without a name, ResourceNotFoundException for an unknown one. */
  table(name: string | undefined): Table;
  /** A page of Query and Scan ends behind the item that reaches this many bytes. */
  readonly pageBytes: number;
}

export const NO_ATTRIBUTES: Item = new Map();

/** Refuses parameters that the operation would silently ignore. */
export function assertParameters(operation: string, input: object, known: readonly string[]): void {
  for (const [name, value] of Object.entries(input)) {
    if (value !== undefined && !known.includes(name)) throw new UnsupportedByFake(`${operation} with ${name}`);
  }
}

interface ConditionalInput {
  ConditionExpression?: string | undefined;
  ExpressionAttributeNames?: Record<string, string> | undefined;
  ExpressionAttributeValues?: Record<string, AttributeValue> | undefined;
  ReturnValuesOnConditionCheckFailure?: string | undefined;
}

export const CONDITIONAL_PARAMETERS = [
  "ConditionExpression",
  "ExpressionAttributeNames",
  "ExpressionAttributeValues",
  "ReturnValuesOnConditionCheckFailure",
  "ReturnConsumedCapacity",
  "ReturnValues",
  "TableName",
] as const;

/** The placeholders and the condition of a write; `assertAllUsed` is left to the caller, who may parse more. */
export function conditionOf(input: ConditionalInput): { placeholders: Placeholders; condition: Condition | undefined } {
  const placeholders = new Placeholders(input.ExpressionAttributeNames, input.ExpressionAttributeValues);
  const text = input.ConditionExpression;
  return {
    placeholders,
    condition: text === undefined ? undefined : parseCondition(text, "ConditionExpression", placeholders),
  };
}

/** ConditionalCheckFailedException, with the item if the request asked for it and there is one. */
export function assertCondition(
  condition: Condition | undefined,
  item: Item | undefined,
  input: ConditionalInput,
): void {
  if (condition === undefined || satisfies(condition, item ?? NO_ATTRIBUTES)) return;
  const wanted = input.ReturnValuesOnConditionCheckFailure === "ALL_OLD" && item !== undefined;
  throw conditionalCheckFailed(wanted ? itemToSdk(item) : undefined);
}
