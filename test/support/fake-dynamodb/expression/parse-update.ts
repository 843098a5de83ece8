import { UnsupportedByFake } from "../errors.ts";
import type { Value } from "../values.ts";
import { pathsOverlap, showPath, type Path } from "./paths.ts";
import type { Placeholders } from "./placeholders.ts";
import { ExpressionReader } from "./reader.ts";
import { targetsOf, type SetOperand, type SetSource, type Update } from "./update.ts";

const SECTIONS = ["SET", "REMOVE", "ADD", "DELETE"] as const;

/** Parses an update expression. ValidationException for whatever DynamoDB would refuse by its text and placeholders. */
export function parseUpdate(text: string, placeholders: Placeholders): Update {
  return new UpdateParser(new ExpressionReader(text, "UpdateExpression", placeholders)).parse();
}

class UpdateParser {
  readonly #reader: ExpressionReader;

  constructor(reader: ExpressionReader) {
    this.#reader = reader;
  }

  parse(): Update {
    const seen = new Set<string>();
    let update: Update = { set: [], remove: [], add: [] };
    while (this.#reader.peek().kind !== "end") {
      const section = SECTIONS.find((keyword) => this.#reader.acceptKeyword(keyword));
      if (section === undefined) throw this.#reader.syntaxError();
      if (seen.has(section)) {
        throw this.#reader.error(`The "${section}" section can only be used once in an update expression;`);
      }
      seen.add(section);
      update = { ...update, ...this.#section(section) };
    }
    this.#checkOverlaps(targetsOf(update));
    return update;
  }

  #section(section: (typeof SECTIONS)[number]): Partial<Update> {
    switch (section) {
      case "SET":
        return { set: this.#reader.list(() => this.#assignment()) };
      case "REMOVE":
        return { remove: this.#reader.list(() => this.#reader.path()) };
      case "ADD":
        return { add: this.#reader.list(() => this.#addition()) };
      case "DELETE":
        throw new UnsupportedByFake("DELETE in an UpdateExpression");
    }
  }

  #assignment(): { path: Path; source: SetSource } {
    const path = this.#reader.path();
    this.#reader.expectSymbol("=");
    return { path, source: this.#source() };
  }

  #source(): SetSource {
    const left = this.#operand();
    const plus = this.#reader.acceptSymbol("+");
    if (!plus && !this.#reader.acceptSymbol("-")) return left;
    const right = this.#operand();
    this.#checkLiteral(plus ? "+" : "-", left, "N");
    this.#checkLiteral(plus ? "+" : "-", right, "N");
    return { kind: plus ? "plus" : "minus", left, right };
  }

  #operand(): SetOperand {
    const token = this.#reader.peek();
    if (token.kind === "value") return { kind: "value", value: this.#reader.value() };
    if (token.kind === "word" && this.#reader.peekSymbol("(", 1)) return this.#function();
    return { kind: "path", path: this.#reader.path() };
  }

  #function(): SetOperand {
    const name = this.#reader.next().text;
    if (name !== "if_not_exists" && name !== "list_append") {
      throw this.#reader.error(`Invalid function name; function name: ${name}`);
    }
    this.#reader.expectSymbol("(");
    const [first, second, ...more] = this.#reader.list(() => this.#operand());
    this.#reader.expectSymbol(")");
    if (first === undefined || second === undefined || more.length > 0) {
      throw this.#reader.error(`Incorrect number of operands for operator or function; operator or function: ${name}`);
    }
    if (name === "list_append") {
      this.#checkLiteral(name, first, "L");
      this.#checkLiteral(name, second, "L");
      return { kind: "list-append", first, second };
    }
    if (first.kind !== "path") {
      throw this.#reader.error(`Operator or function requires a document path; operator or function: ${name}`);
    }
    return { kind: "if-not-exists", path: first.path, otherwise: second };
  }

  #addition(): { path: Path; value: Value } {
    const path = this.#reader.path();
    const value = this.#reader.value();
    if (value.type === "SS" || value.type === "NS" || value.type === "BS") throw new UnsupportedByFake("ADD to sets");
    this.#checkLiteral("ADD", { kind: "value", value }, "N");
    return { path, value };
  }

  #checkLiteral(operator: string, operand: SetOperand, type: Value["type"]): void {
    if (operand.kind === "value" && operand.value.type !== type) {
      throw this.#reader.error(
        "Incorrect operand type for operator or function; " +
          `operator or function: ${operator}, operand type: ${operand.value.type}`,
      );
    }
  }

  #checkOverlaps(paths: readonly Path[]): void {
    for (const [i, one] of paths.entries()) {
      for (const two of paths.slice(i + 1)) {
        if (pathsOverlap(one, two) || pathsOverlap(two, one)) {
          throw this.#reader.error(
            "Two document paths overlap with each other; must remove or rewrite one of these paths; " +
              `path one: ${showPath(one)}, path two: ${showPath(two)}`,
          );
        }
      }
    }
  }
}
