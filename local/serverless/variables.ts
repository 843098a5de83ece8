import { readFileSync } from "node:fs";
import path from "node:path";
import { parseCloudFormationYaml } from "./yaml.ts";

/** Where the values of variables come from in a local run. */
export interface VariableSources {
  /** Absolute path of the folder that holds serverless.yml; `${file(...)}` is relative to it. */
  readonly projectRoot: string;
  readonly stage: string;
  readonly region: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * `${source:address}` or `${file(path)}`. CloudFormation's own `${Name.Arn}` and `${AWS::Region}` have no `source:` and
 * stay as they are.
 */
const VARIABLE = /\$\{([a-zA-Z]+(?::(?!:)|\()[^{}]*)\}/g;
const MAX_DEPTH = 20;

/**
 * Resolves the variables of a Serverless configuration, and only those in the parts that are asked for: a local run must
 * not need what only a deployment knows.
 */
export class VariableResolver {
  readonly #document: unknown;
  readonly #sources: VariableSources;

  constructor(document: unknown, sources: VariableSources) {
    this.#document = document;
    this.#sources = sources;
  }

  /**
   * A copy of `value` without variables.
   * @param at where the value stands, for errors, such as `functions.reconcile.timeout`
   * @throws {Error} naming the variable and the place when it cannot be resolved.
   */
  resolve(value: unknown, at: string, depth = 0): unknown {
    if (depth > MAX_DEPTH) throw new Error(`serverless.yml: ${at}: variables refer to each other in a circle`);
    if (typeof value === "string") return this.#resolveText(value, at, depth);
    if (Array.isArray(value)) return value.map((inner, i) => this.resolve(inner, `${at}.${i}`, depth));
    if (typeof value === "object" && value !== null) {
      return Object.fromEntries(
        Object.entries(value).map(([key, inner]) => [key, this.resolve(inner, `${at}.${key}`, depth)]),
      );
    }
    return value;
  }

  #resolveText(text: string, at: string, depth: number): unknown {
    const matches = [...text.matchAll(VARIABLE)];
    const only = matches[0];
    if (only?.[0] === text) return this.#lookUp(only[1] ?? "", at, depth);
    let result = text;
    for (const match of matches) {
      const value = this.#lookUp(match[1] ?? "", at, depth);
      if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") {
        throw new Error(`serverless.yml: ${at}: ${match[0]} is not text`);
      }
      result = result.replace(match[0], () => String(value));
    }
    if (/\$\{[a-zA-Z]+(?::(?!:)|\()/.test(result)) {
      throw new Error(`serverless.yml: ${at}: nested variables are not resolved locally: ${text}`);
    }
    return result;
  }

  #lookUp(expression: string, at: string, depth: number): unknown {
    for (const alternative of splitOutsideQuotes(expression)) {
      const literal = literalOf(alternative);
      if (literal !== undefined) return literal.value;
      const value = this.#fromSource(alternative, at);
      if (value !== undefined) return this.resolve(value, at, depth + 1);
    }
    throw new Error(`serverless.yml: ${at}: cannot resolve \${${expression}} for a local run`);
  }

  #fromSource(reference: string, at: string): unknown {
    const file = /^file\(([^)]+)\)(?::(.+))?$/.exec(reference);
    if (file?.[1] !== undefined) {
      const content = this.#readFile(file[1]);
      return file[2] === undefined ? content : memberAt(content, file[2]);
    }
    const colon = reference.indexOf(":");
    const source = reference.slice(0, colon);
    const address = reference.slice(colon + 1);
    const { stage, region, env } = this.#sources;
    switch (source) {
      case "self":
        return memberAt(this.#document, address);
      case "param":
        return (
          memberAt(this.#document, `params.${stage}.${address}`) ??
          memberAt(this.#document, `params.default.${address}`)
        );
      case "env":
        return env[address];
      case "sls":
        return address === "stage" ? stage : undefined;
      case "aws":
        return address === "region" ? region : undefined;
      case "opt":
        return { stage, region }[address];
      default:
        throw new Error(`serverless.yml: ${at}: the source of \${${reference}} is not available in a local run`);
    }
  }

  #readFile(relative: string): unknown {
    const fileName = path.resolve(this.#sources.projectRoot, relative.trim());
    return parseCloudFormationYaml(readFileSync(fileName, "utf8"), relative);
  }
}

/** The member at a dotted address; undefined when any step is missing. */
export function memberAt(value: unknown, address: string): unknown {
  let current = value;
  for (const key of address.split(".")) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, key)) return undefined;
    current = (current as Record<string, unknown>)[key];
  }
  return current;
}

function splitOutsideQuotes(expression: string): string[] {
  const parts = expression.match(/(?:[^,"']|"[^"]*"|'[^']*')+/g) ?? [];
  return parts.map((part) => part.trim());
}

function literalOf(text: string): { value: unknown } | undefined {
  const quoted = /^(["'])(.*)\1$/.exec(text);
  if (quoted !== null) return { value: quoted[2] };
  if (text === "true" || text === "false") return { value: text === "true" };
  if (text === "null") return { value: null };
  if (/^-?\d+(\.\d+)?$/.test(text)) return { value: Number(text) };
  return undefined;
}
