import type { Value } from "../values.ts";
import type { Path } from "./paths.ts";
import type { Placeholders } from "./placeholders.ts";
import { RESERVED_WORDS } from "./reserved-words.ts";
import { invalid, tokenize, type ExpressionKind, type Token } from "./tokens.ts";

/** The tokens of one expression, read from left to right; what all expression parsers have in common. */
export class ExpressionReader {
  readonly #kind: ExpressionKind;
  readonly #placeholders: Placeholders;
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(text: string, kind: ExpressionKind, placeholders: Placeholders) {
    this.#kind = kind;
    this.#placeholders = placeholders;
    this.#tokens = tokenize(text, kind);
  }

  peek(ahead = 0): Token {
    return this.#tokens[Math.min(this.#at + ahead, this.#tokens.length - 1)] ?? { kind: "end", text: "<EOF>" };
  }

  next(): Token {
    const token = this.peek();
    this.#at++;
    return token;
  }

  /** Keywords are read in any case. */
  peekKeyword(keyword: string, ahead = 0): boolean {
    const token = this.peek(ahead);
    return token.kind === "word" && token.text.toUpperCase() === keyword;
  }

  acceptKeyword(keyword: string): boolean {
    const found = this.peekKeyword(keyword);
    if (found) this.#at++;
    return found;
  }

  peekSymbol(symbol: string, ahead = 0): boolean {
    const token = this.peek(ahead);
    return token.kind === "symbol" && token.text === symbol;
  }

  acceptSymbol(symbol: string): boolean {
    const found = this.peekSymbol(symbol);
    if (found) this.#at++;
    return found;
  }

  expectSymbol(symbol: string): void {
    if (!this.acceptSymbol(symbol)) throw this.syntaxError();
  }

  expectKeyword(keyword: string): void {
    if (!this.acceptKeyword(keyword)) throw this.syntaxError();
  }

  expectEnd(): void {
    if (this.peek().kind !== "end") throw this.syntaxError();
  }

  /** `a.b[0].#c`: reserved words need a `#name`. */
  path(): Path {
    const path: (string | number)[] = [this.#attributeName()];
    for (;;) {
      if (this.acceptSymbol(".")) {
        path.push(this.#attributeName());
      } else if (this.acceptSymbol("[")) {
        if (this.peek().kind !== "integer") throw this.syntaxError();
        path.push(Number(this.next().text));
        this.expectSymbol("]");
      } else {
        return path;
      }
    }
  }

  value(): Value {
    if (this.peek().kind !== "value") throw this.syntaxError();
    return this.#placeholders.value(this.next().text, this.#kind);
  }

  /** `read (, read)*` */
  list<T>(read: () => T): T[] {
    const found = [read()];
    while (this.acceptSymbol(",")) found.push(read());
    return found;
  }

  syntaxError(): Error {
    const near = [this.#tokens[this.#at - 1], this.peek(), this.#tokens[this.#at + 1]];
    const text = near.flatMap((token) => (token === undefined ? [] : [token.text])).join(" ");
    return invalid(this.#kind, `Syntax error; token: "${this.peek().text}", near: "${text}"`);
  }

  error(detail: string): Error {
    return invalid(this.#kind, detail);
  }

  #attributeName(): string {
    const token = this.peek();
    if (token.kind !== "word" && token.kind !== "name") throw this.syntaxError();
    this.#at++;
    if (token.kind === "name") return this.#placeholders.name(token.text, this.#kind);
    if (RESERVED_WORDS.has(token.text.toUpperCase())) {
      throw this.error(`Attribute name is a reserved keyword; reserved keyword: ${token.text}`);
    }
    return token.text;
  }
}
