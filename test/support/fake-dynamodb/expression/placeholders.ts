import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { validationError } from "../errors.ts";
import { fromSdk, type Value } from "../values.ts";
import { invalid, type ExpressionKind } from "./tokens.ts";

/** ExpressionAttributeNames and ExpressionAttributeValues of one request, which all of its expressions share. */
export class Placeholders {
  readonly #names: ReadonlyMap<string, string>;
  readonly #values: ReadonlyMap<string, Value>;
  readonly #used = new Set<string>();

  constructor(names: Record<string, string> | undefined, values: Record<string, AttributeValue> | undefined) {
    this.#names = new Map(entries("ExpressionAttributeNames", "#", names));
    this.#values = new Map(
      entries("ExpressionAttributeValues", ":", values).map(([key, value]) => [key, fromSdk(value)]),
    );
  }

  name(placeholder: string, expression: ExpressionKind): string {
    const name = this.#names.get(placeholder);
    if (name === undefined) {
      throw invalid(
        expression,
        `An expression attribute name used in the document path is not defined; attribute name: ${placeholder}`,
      );
    }
    this.#used.add(placeholder);
    return name;
  }

  value(placeholder: string, expression: ExpressionKind): Value {
    const value = this.#values.get(placeholder);
    if (value === undefined) {
      throw invalid(
        expression,
        `An expression attribute value used in expression is not defined; attribute value: ${placeholder}`,
      );
    }
    this.#used.add(placeholder);
    return value;
  }

  /** To be called when all expressions are parsed: what none of them used is refused. */
  assertAllUsed(anyExpression: boolean): void {
    this.#assertUsed("ExpressionAttributeNames", this.#names, anyExpression);
    this.#assertUsed("ExpressionAttributeValues", this.#values, anyExpression);
  }

  #assertUsed(parameter: string, placeholders: ReadonlyMap<string, unknown>, anyExpression: boolean): void {
    if (placeholders.size > 0 && !anyExpression) {
      throw validationError(`${parameter} can only be specified when using expressions`);
    }
    const unused = [...placeholders.keys()].filter((placeholder) => !this.#used.has(placeholder));
    if (unused.length > 0) {
      throw validationError(`Value provided in ${parameter} unused in expressions: keys: {${unused.join(", ")}}`);
    }
  }
}

function entries<T>(parameter: string, sigil: string, given: Record<string, T> | undefined): [string, T][] {
  if (given === undefined) return [];
  const found = Object.entries(given);
  if (found.length === 0) throw validationError(`${parameter} must not be empty`);
  for (const [key] of found) {
    if (!key.startsWith(sigil) || !/^[A-Za-z0-9_]+$/.test(key.slice(1))) {
      throw validationError(`${parameter} contains invalid key: Syntax error; key: "${key}"`);
    }
  }
  return found;
}
