import fc from "fast-check";

/** A JSON document as it stands in a text: numbers by their digits, members in order and with repetitions. */
export type Document =
  | { readonly kind: "number"; readonly source: string }
  | { readonly kind: "text"; readonly value: string; readonly source: string }
  | { readonly kind: "word"; readonly source: "true" | "false" | "null" }
  | { readonly kind: "list"; readonly items: readonly Document[]; readonly space: string }
  | {
      readonly kind: "object";
      readonly members: readonly (readonly [key: string, source: string, value: Document])[];
      readonly space: string;
    };

const digits = (max: number) => fc.string({ unit: fc.constantFrom("0", "1", "5", "9"), minLength: 1, maxLength: max });

/** Every form of number that JSON has. */
const numberSource = fc.oneof(
  fc.bigInt({ min: 0n, max: 10n ** 38n - 1n }).map(String),
  fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }).map(String),
  fc.constantFrom("0", "-0", "1.0", "1e3", "1E-0", "0e999999", "1e400", "9007199254740991.4", "1700000000000000.1"),
  fc.constantFrom("1.00000000000000000000001", "10e-1", "123e-2", "9007199254740993", "1e21", "100.00e-2"),
  fc
    .tuple(fc.bigInt({ min: 0n, max: 10n ** 20n }), digits(25), fc.option(fc.integer({ min: -25, max: 25 })))
    .map(([whole, fraction, exponent]) => `${whole}.${fraction}${exponent === null ? "" : `e${exponent}`}`),
);

const space = fc.constantFrom("", "", " ", "\n", "\t\r\n ");

/** The same text by another spelling: each character may be escaped. */
const spelled = (value: string) =>
  fc
    .constantFrom(false, true)
    .map((escaped) =>
      escaped
        ? `"${[...Array(value.length).keys()].map((at) => `\\u${value.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")}"`
        : JSON.stringify(value),
    );

const word = fc.oneof(
  fc.string({ unit: "binary", maxLength: 6 }),
  fc.constantFrom("__proto__", "constructor", "length", "0", "1", "01", "a", "b", "~", "/", '"', "\\", "]}", "{\\", ""),
  fc.constantFrom("12", "007", "-1", " 3", "9".repeat(38), "9".repeat(39)),
);

const { value: anyDocument } = fc.letrec<{ value: Document }>((tie) => ({
  value: fc.oneof(
    { depthSize: "medium", withCrossShrink: true },
    numberSource.map((source): Document => ({ kind: "number", source })),
    word.chain((value) => spelled(value).map((source): Document => ({ kind: "text", value, source }))),
    fc.constantFrom("true", "false", "null").map((source): Document => ({ kind: "word", source })),
    fc
      .record({ items: fc.array(tie("value"), { maxLength: 4 }), space })
      .map((list): Document => ({ kind: "list", ...list })),
    fc
      .record({
        members: fc.array(
          word.chain((key) => fc.tuple(fc.constant(key), spelled(key), tie("value"))),
          { maxLength: 4 },
        ),
        space,
      })
      .map((object): Document => ({ kind: "object", ...object })),
  ),
}));

export { anyDocument };

export function written(document: Document): string {
  switch (document.kind) {
    case "list":
      return `[${document.space}${document.items.map(written).join(`${document.space},`)}${document.space}]`;
    case "object": {
      const { members, space: gap } = document;
      return `{${gap}${members.map(([, key, value]) => `${key}${gap}:${gap}${written(value)}`).join(`${gap},${gap}`)}${gap}}`;
    }
    default:
      return document.source;
  }
}

/** All paths that lead somewhere; of members with the same name, the last counts. */
export function pathsOf(document: Document): { readonly path: readonly string[]; readonly at: Document }[] {
  const below = (key: string, value: Document) => pathsOf(value).map(({ path, at }) => ({ path: [key, ...path], at }));
  switch (document.kind) {
    case "list":
      return [{ path: [], at: document }, ...document.items.flatMap((item, n) => below(String(n), item))];
    case "object":
      return [
        { path: [], at: document },
        ...[...new Map(document.members.map(([key, , value]) => [key, value]))].flatMap(([key, value]) =>
          below(key, value),
        ),
      ];
    default:
      return [{ path: [], at: document }];
  }
}

export const pointerOf = (path: readonly string[]): string =>
  path.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
