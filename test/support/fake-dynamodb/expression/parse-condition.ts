import { checkBetween, checkDistinct, checkFunctionOperand, checkOrdered } from "./check-operands.ts";
import type { Comparator, Condition, Operand } from "./condition.ts";
import type { Placeholders } from "./placeholders.ts";
import { ExpressionReader } from "./reader.ts";
import type { ExpressionKind } from "./tokens.ts";

const COMPARATORS: readonly string[] = ["=", "<>", "<", "<=", ">", ">="] satisfies Comparator[];
const ARITY = new Map([
  ["attribute_exists", 1],
  ["attribute_not_exists", 1],
  ["attribute_type", 2],
  ["begins_with", 2],
  ["contains", 2],
]);
const VALUE_TYPES = ["S", "SS", "N", "NS", "B", "BS", "BOOL", "NULL", "L", "M"];

/** Parses a condition, filter or key condition expression. ValidationException for whatever DynamoDB would refuse. */
export function parseCondition(text: string, kind: ExpressionKind, placeholders: Placeholders): Condition {
  return new ConditionParser(new ExpressionReader(text, kind, placeholders)).parse();
}

/**
 * condition := and (OR and)* · and := not (AND not)* · not := NOT not | primary
 * primary := "(" condition ")" | function | operand (comparator operand | BETWEEN operand AND operand | IN (operand, …))
 */
class ConditionParser {
  readonly #reader: ExpressionReader;
  /** The condition that stood in the last pair of parentheses: a second pair around it is an error. */
  #parenthesised: Condition | undefined;

  constructor(reader: ExpressionReader) {
    this.#reader = reader;
  }

  parse(): Condition {
    const condition = this.#or();
    this.#reader.expectEnd();
    return condition;
  }

  #or(): Condition {
    let left = this.#and();
    while (this.#reader.acceptKeyword("OR")) left = { kind: "or", left, right: this.#and() };
    return left;
  }

  #and(): Condition {
    let left = this.#not();
    while (this.#reader.acceptKeyword("AND")) left = { kind: "and", left, right: this.#not() };
    return left;
  }

  #not(): Condition {
    return this.#reader.acceptKeyword("NOT") ? { kind: "not", condition: this.#not() } : this.#primary();
  }

  #primary(): Condition {
    if (this.#reader.acceptSymbol("(")) return this.#inParentheses();
    if (this.#atFunction() && this.#reader.peek().text !== "size") return this.#function();
    const operand = this.#operand();
    if (this.#reader.acceptKeyword("BETWEEN")) {
      const low = this.#operand();
      this.#reader.expectKeyword("AND");
      const high = this.#operand();
      checkBetween(this.#reader, low, high);
      return { kind: "between", operand, low, high };
    }
    if (this.#reader.acceptKeyword("IN")) {
      this.#reader.expectSymbol("(");
      const choices = this.#reader.list(() => this.#operand());
      this.#reader.expectSymbol(")");
      return { kind: "in", operand, choices };
    }
    return this.#comparison(operand);
  }

  #inParentheses(): Condition {
    const condition = this.#or();
    this.#reader.expectSymbol(")");
    if (this.#parenthesised === condition) throw this.#reader.error("The expression has redundant parentheses;");
    this.#parenthesised = condition;
    return condition;
  }

  #comparison(left: Operand): Condition {
    const token = this.#reader.peek();
    const comparator = token.kind === "symbol" && isComparator(token.text) ? token.text : undefined;
    if (comparator === undefined) throw this.#reader.syntaxError();
    this.#reader.next();
    const right = this.#operand();
    checkDistinct(this.#reader, comparator, left, right);
    if (comparator !== "=" && comparator !== "<>") checkOrdered(this.#reader, comparator, [left, right]);
    return { kind: "compare", comparator, left, right };
  }

  #function(): Condition {
    const name = this.#reader.next().text;
    const arity = ARITY.get(name);
    if (arity === undefined) {
      const known = name === "if_not_exists" || name === "list_append";
      throw this.#reader.error(
        known
          ? `The function is not allowed in a condition expression; function: ${name}`
          : `Invalid function name; function name: ${name}`,
      );
    }
    const [first, second] = this.#arguments(name, arity);
    if (first === undefined) throw this.#reader.syntaxError();
    if (name === "begins_with" || name === "contains") {
      if (second === undefined) throw this.#reader.syntaxError();
      if (name === "begins_with") checkFunctionOperand(this.#reader, name, [first, second], ["S", "B"]);
      return { kind: name === "contains" ? "contains" : "begins-with", operand: first, part: second };
    }
    if (first.kind !== "path") {
      throw this.#reader.error(`Operator or function requires a document path; operator or function: ${name}`);
    }
    if (name !== "attribute_type") {
      return { kind: "exists", path: first.path, expected: name === "attribute_exists" };
    }
    return { kind: "type", path: first.path, type: this.#typeName(second) };
  }

  #typeName(operand: Operand | undefined): string {
    const type = operand?.kind === "value" && operand.value.type === "S" ? operand.value.value : undefined;
    if (type === undefined || !VALUE_TYPES.includes(type)) {
      throw this.#reader.error(
        `Invalid attribute type name found; type: ${type ?? "(none)"}, valid types: {${VALUE_TYPES.join(",")}}`,
      );
    }
    return type;
  }

  #arguments(name: string, arity: number): Operand[] {
    this.#reader.expectSymbol("(");
    const operands = this.#reader.list(() => this.#operand());
    this.#reader.expectSymbol(")");
    if (operands.length !== arity) {
      throw this.#reader.error(
        "Incorrect number of operands for operator or function; " +
          `operator or function: ${name}, number of operands: ${operands.length}`,
      );
    }
    return operands;
  }

  #operand(): Operand {
    if (this.#reader.peek().kind === "value") return { kind: "value", value: this.#reader.value() };
    if (!this.#atFunction()) return { kind: "path", path: this.#reader.path() };
    const name = this.#reader.next().text;
    if (name !== "size") {
      throw this.#reader.error(`The function is not allowed to be used this way in an expression; function: ${name}`);
    }
    const [of] = this.#arguments(name, 1);
    if (of === undefined) throw this.#reader.syntaxError();
    return { kind: "size", of };
  }

  #atFunction(): boolean {
    return this.#reader.peek().kind === "word" && this.#reader.peekSymbol("(", 1);
  }
}

function isComparator(text: string): text is Comparator {
  return COMPARATORS.includes(text);
}
