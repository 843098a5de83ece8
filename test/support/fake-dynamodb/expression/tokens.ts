import { validationError } from "../errors.ts";

/** Which parameter an expression came in: part of every error message about it. */
export type ExpressionKind =
  "ConditionExpression" | "FilterExpression" | "KeyConditionExpression" | "UpdateExpression" | "ProjectionExpression";

export interface Token {
  /** `name` is `#x`, `value` is `:x`. */
  readonly kind: "word" | "name" | "value" | "integer" | "symbol" | "end";
  readonly text: string;
}

const PATTERN =
  /(?<space>\s+)|(?<word>[A-Za-z][A-Za-z0-9_]*)|(?<name>#[A-Za-z0-9_]+)|(?<value>:[A-Za-z0-9_]+)|(?<integer>\d+)|(?<symbol><>|<=|>=|[=<>+\-(),.[\]])/y;
const KINDS = ["word", "name", "value", "integer", "symbol"] as const;

export function invalid(kind: ExpressionKind, detail: string): Error {
  return validationError(`Invalid ${kind}: ${detail}`);
}

/** Splits an expression; the last token is always `end`. */
export function tokenize(text: string, expression: ExpressionKind): Token[] {
  if (text.trim() === "") throw invalid(expression, "The expression can not be empty;");
  const tokens: Token[] = [];
  PATTERN.lastIndex = 0;
  while (PATTERN.lastIndex < text.length) {
    const at = PATTERN.lastIndex;
    const groups = PATTERN.exec(text)?.groups;
    if (groups === undefined) {
      throw invalid(expression, `Syntax error; token: "${text.charAt(at)}", near: "${text.slice(at, at + 10)}"`);
    }
    const kind = KINDS.find((candidate) => groups[candidate] !== undefined);
    if (kind !== undefined) tokens.push({ kind, text: groups[kind] ?? "" });
  }
  tokens.push({ kind: "end", text: "<EOF>" });
  return tokens;
}
