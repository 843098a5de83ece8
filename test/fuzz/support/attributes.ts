import { PutItemCommand, type AttributeValue } from "@aws-sdk/client-dynamodb";
import fc from "fast-check";
import { CONNECTION } from "../../../shared/connection/attributes.ts";
import type { RawItem } from "../../../shared/connection/item.ts";
import type { LeaseTable } from "../../../shared/lease/index.ts";

/** Numbers as a producer could write them: DynamoDB keeps 38 digits and exponents up to 125. */
export const numberText = fc.oneof(
  fc.constantFrom("0", "-0", "1", "-1", "0.5", "1.5", "1E125", "-1E125", "1E-130", "9".repeat(38), "1E37", "1E38"),
  fc.bigInt({ min: -(10n ** 38n) + 1n, max: 10n ** 38n - 1n }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e120, max: 1e120 }).map(String),
);

/** Text of any kind: short, long, of any code units, and words that mean something somewhere in the fleet. */
export const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.string({ maxLength: 20 }),
  fc.constantFrom("STARTED", "STOPPED", "wss://feed.test/", "ws://feed.test/{cursor}", "sequence", "cursor", "/seq"),
  fc.constantFrom("__proto__", "constructor", "toString", "\u0000", "\ud800", "a#b", "#clock", "%", "${HOME}"),
  fc.constantFrom("x".repeat(1025), "ü".repeat(2000), "x".repeat(100_000)),
);

const keys = fc.oneof(text, fc.constantFrom("position", "pointer", "kind", "initial", "__proto__"));

/** One attribute value of any type and shape that the SDK can send. */
export const { value: attribute } = fc.letrec<{ value: AttributeValue; list: AttributeValue[]; map: RawItem }>(
  (tie) => ({
    list: fc.array(tie("value"), { maxLength: 3 }),
    map: fc.dictionary(keys, tie("value"), { maxKeys: 4, noNullPrototype: false }),
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      text.map((S) => ({ S })),
      numberText.map((N) => ({ N })),
      fc.uint8Array({ maxLength: 20 }).map((B) => ({ B })),
      fc.boolean().map((BOOL) => ({ BOOL })),
      fc.constant({ NULL: true as const }),
      fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 3 }).map((SS) => ({ SS })),
      fc.uniqueArray(fc.nat(), { minLength: 1, maxLength: 3 }).map((numbers) => ({ NS: numbers.map(String) })),
      tie("list").map((L) => ({ L })),
      tie("map").map((M) => ({ M })),
    ),
  }),
);

const position = fc.record(
  {
    pointer: fc.oneof(fc.constantFrom("/seq", "", "/a/0"), text).map((S) => ({ S })),
    kind: fc.oneof(fc.constantFrom("sequence", "cursor"), text).map((S) => ({ S })),
    initial: text.map((S) => ({ S })),
  },
  { requiredKeys: ["pointer", "kind"] },
);

/** By attribute: values that are nearly right more often than by chance. */
const NEARLY: Readonly<Record<string, fc.Arbitrary<AttributeValue>>> = {
  [CONNECTION.desiredState]: fc.constantFrom({ S: "STARTED" }, { S: "STARTED" }, { S: "STOPPED" }),
  [CONNECTION.wsUrl]: fc
    .oneof(fc.webUrl({ validSchemes: ["ws", "wss", "http"], withQueryParameters: true }), text)
    .map((S) => ({ S })),
  [CONNECTION.upstream]: position.map((M) => ({ M: { position: { M } } })),
  [CONNECTION.owner]: fc.constantFrom({ S: "somebody" }),
  [CONNECTION.expiresAtMs]: numberText.map((N) => ({ N })),
  [CONNECTION.epoch]: numberText.map((N) => ({ N })),
  [CONNECTION.lastSeq]: numberText.map((N) => ({ N })),
  [CONNECTION.lastCursor]: text.map((S) => ({ S })),
  [CONNECTION.lastError]: text.map((S) => ({ S })),
  [CONNECTION.failureCount]: numberText.map((N) => ({ N })),
};

const changes = fc
  .array(
    fc
      .constantFrom(...Object.keys(NEARLY))
      .chain((name) =>
        fc.oneof(NEARLY[name] ?? attribute, attribute, fc.constant(undefined)).map((value) => ({ name, value })),
      ),
    { maxLength: 4 },
  )
  .map((list) => Object.fromEntries(list.map(({ name, value }) => [name, value])));

/** A sound free connection with up to four attributes changed to anything, or taken away. */
export const anyConnection: fc.Arbitrary<RawItem> = changes.map((changed) =>
  Object.fromEntries(
    Object.entries<AttributeValue | undefined>({
      [CONNECTION.desiredState]: { S: "STARTED" },
      [CONNECTION.wsUrl]: { S: "wss://feed.test/" },
      [CONNECTION.expiresAtMs]: { N: "0" },
      ...changed,
    }).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  ),
);

/** False when the store refuses it, as it does with an index key of a wrong type: such an item cannot exist. */
export async function put(table: LeaseTable, item: RawItem): Promise<boolean> {
  try {
    await table.client.send(new PutItemCommand({ TableName: table.tableName, Item: item }));
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === "ValidationException") return false;
    throw error;
  }
}
