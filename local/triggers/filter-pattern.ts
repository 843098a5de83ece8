/**
 * Content filters as Lambda's event source mappings and EventBridge's rules evaluate them.
 *
 * A pattern is a tree of the event's keys; a leaf is a list of alternatives. Both services compare **leaves only**: an
 * object in the event is not a value, so `exists: false` on a key that holds an object matches. All keys of a pattern must
 * match, one alternative of each leaf must, and `$or` holds alternative patterns. In an array of the event, one element
 * that matches is enough.
 */
export type Matcher = (event: unknown) => boolean;

type Primitive = string | number | boolean | null;
type LeafTest = (value: Primitive) => boolean;
/** One alternative of a leaf: a test for present values, or the wish that there is none. */
type Alternative = { readonly present: LeafTest } | { readonly absent: true };

export interface PatternOptions {
  /** Where the pattern stands, for errors. */
  readonly at: string;
  /** Values come from DynamoDB stream records, where numbers are text: patterns that compare numbers are refused. */
  readonly numbersAreText?: boolean;
}

/** @throws {Error} naming the operator and its place when the pattern is malformed or uses one that is not supported. */
export function compilePattern(pattern: unknown, options: PatternOptions): Matcher {
  if (!isObject(pattern)) throw new Error(`${options.at}: a pattern must be a mapping`);
  const tests = Object.entries(pattern).map(([key, value]) => compileMember(key, value, options));
  if (tests.length === 0) throw new Error(`${options.at}: a pattern must not be empty`);
  return (event) => tests.every((test) => test(event));
}

/** Matches when any of the patterns does; an empty list matches everything. */
export function compileAlternatives(patterns: readonly unknown[], options: PatternOptions): Matcher {
  const matchers = patterns.map((pattern, i) => compilePattern(pattern, { ...options, at: `${options.at}.${i}` }));
  return (event) => matchers.length === 0 || matchers.some((matches) => matches(event));
}

function compileMember(key: string, value: unknown, options: PatternOptions): Matcher {
  const at = `${options.at}.${key}`;
  if (key === "$or") {
    if (!Array.isArray(value) || value.length === 0) throw new Error(`${at}: $or must be a list of patterns`);
    return compileAlternatives(value, { ...options, at });
  }
  if (Array.isArray(value)) {
    if (value.length === 0) throw new Error(`${at}: an empty list would match nothing`);
    const alternatives = value.map((one, i) => compileAlternative(one, { ...options, at: `${at}.${i}` }));
    return (event) => matchesLeaf(alternatives, member(event, key));
  }
  if (!isObject(value)) throw new Error(`${at}: must be a list of alternatives, or a mapping of nested keys`);
  const nested = compilePattern(value, { ...options, at });
  return (event) => {
    const inner = member(event, key);
    return Array.isArray(inner) ? inner.some(nested) : nested(inner);
  };
}

function matchesLeaf(alternatives: readonly Alternative[], value: unknown): boolean {
  const candidates: unknown[] = Array.isArray(value) ? value : [value];
  const values = candidates.filter(isPrimitive);
  return alternatives.some((one) => ("absent" in one ? values.length === 0 : values.some(one.present)));
}

function compileAlternative(alternative: unknown, options: PatternOptions): Alternative {
  if (isPrimitive(alternative)) {
    if (typeof alternative === "number") refuseNumber(options);
    return { present: (value) => value === alternative };
  }
  const [operator, argument] = singleEntry(alternative, options.at);
  const at = `${options.at}.${operator}`;
  switch (operator) {
    case "exists":
      if (typeof argument !== "boolean") throw new Error(`${at}: must be true or false`);
      return argument ? { present: () => true } : { absent: true };
    case "prefix":
    case "suffix":
    case "equals-ignore-case":
      return { present: textTest(operator, argument, at) };
    case "anything-but":
      return { present: anythingBut(argument, at) };
    case "numeric":
      refuseNumber(options);
      return { present: numericTest(argument, at) };
    default:
      throw new Error(`${options.at}: the operator ${JSON.stringify(operator)} is not supported`);
  }
}

function refuseNumber({ at, numbersAreText }: PatternOptions): void {
  if (numbersAreText === true && /\.(NewImage|OldImage|Keys)\./.test(at)) {
    throw new Error(`${at}: stream records carry numbers as text, so a number never matches; write it as a string`);
  }
}

function textTest(operator: "prefix" | "suffix" | "equals-ignore-case", argument: unknown, at: string): LeafTest {
  if (isObject(argument) && operator !== "equals-ignore-case") {
    const [inner, text] = singleEntry(argument, at);
    if (inner !== "equals-ignore-case")
      throw new Error(`${at}: the operator ${JSON.stringify(inner)} is not supported`);
    const lowered = requireText(text, at).toLowerCase();
    return (value) => typeof value === "string" && compareText(operator, value.toLowerCase(), lowered);
  }
  const text = requireText(argument, at);
  if (operator === "equals-ignore-case") {
    return (value) => typeof value === "string" && value.toLowerCase() === text.toLowerCase();
  }
  return (value) => typeof value === "string" && compareText(operator, value, text);
}

function compareText(operator: "prefix" | "suffix", value: string, text: string): boolean {
  return operator === "prefix" ? value.startsWith(text) : value.endsWith(text);
}

function anythingBut(argument: unknown, at: string): LeafTest {
  if (isObject(argument)) {
    const [operator, inner] = singleEntry(argument, at);
    if (operator !== "prefix" && operator !== "suffix" && operator !== "equals-ignore-case") {
      throw new Error(`${at}: the operator ${JSON.stringify(operator)} is not supported`);
    }
    const tests = asList(inner).map((one) => textTest(operator, one, `${at}.${operator}`));
    return (value) => !tests.some((test) => test(value));
  }
  const excluded = asList(argument);
  if (excluded.length === 0 || !excluded.every(isPrimitive))
    throw new Error(`${at}: must be a value or a list of values`);
  return (value) => !excluded.includes(value);
}

const COMPARISONS: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  "=": (a, b) => a === b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
};

function numericTest(argument: unknown, at: string): LeafTest {
  const parts = asList(argument);
  if (parts.length !== 2 && parts.length !== 4) throw new Error(`${at}: must be [operator, number] or two such pairs`);
  const tests: ((value: number) => boolean)[] = [];
  for (let i = 0; i < parts.length; i += 2) {
    const compare = COMPARISONS[String(parts[i])];
    const bound = parts[i + 1];
    if (compare === undefined || typeof bound !== "number") {
      throw new Error(`${at}: must be [operator, number], the operator one of ${Object.keys(COMPARISONS).join(" ")}`);
    }
    tests.push((value) => compare(value, bound));
  }
  return (value) => typeof value === "number" && tests.every((test) => test(value));
}

function singleEntry(value: unknown, at: string): [string, unknown] {
  const entries = isObject(value) ? Object.entries(value) : [];
  const [entry] = entries;
  if (entry === undefined || entries.length > 1) throw new Error(`${at}: must be a value or exactly one operator`);
  return entry;
}

function requireText(value: unknown, at: string): string {
  if (typeof value !== "string" || value === "") throw new Error(`${at}: must be a non-empty string`);
  return value;
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [value];
}

function member(value: unknown, key: string): unknown {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isPrimitive(value: unknown): value is Primitive {
  return value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}
