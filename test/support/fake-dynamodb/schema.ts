import type { CreateTableCommandInput, KeySchemaElement, Projection, StreamViewType } from "@aws-sdk/client-dynamodb";
import { UnsupportedByFake } from "./errors.ts";

/** A table as CreateTable takes it; the same definition creates the table on a real server. */
export type TableDefinition = Pick<
  CreateTableCommandInput,
  | "TableName"
  | "KeySchema"
  | "AttributeDefinitions"
  | "GlobalSecondaryIndexes"
  | "LocalSecondaryIndexes"
  | "StreamSpecification"
>;

export interface KeyAttribute {
  readonly name: string;
  readonly type: string;
}

export interface KeyShape {
  readonly hash: KeyAttribute;
  readonly range?: KeyAttribute;
}

export interface IndexSchema extends KeyShape {
  readonly name: string;
  /** Attribute names that the index holds, its own and the table's keys included. */
  readonly projected: "ALL" | ReadonlySet<string>;
}

export interface TableSchema extends KeyShape {
  readonly name: string;
  readonly indexes: readonly IndexSchema[];
  /** Absent: the table has no stream. */
  readonly streamViewType?: StreamViewType;
}

export function compileSchema(definition: TableDefinition): TableSchema {
  const name = definition.TableName ?? fail("(unnamed)", "TableName is required");
  if (definition.LocalSecondaryIndexes !== undefined) throw new UnsupportedByFake("LocalSecondaryIndexes");
  const types = new Map(definition.AttributeDefinitions?.map((d) => [d.AttributeName, d.AttributeType]));
  const keyAttribute = (attribute: string): KeyAttribute => ({
    name: attribute,
    type: types.get(attribute) ?? fail(name, `AttributeDefinitions lacks key attribute ${attribute}`),
  });
  const keyShape = (elements: readonly KeySchemaElement[] | undefined): KeyShape => {
    const named = (keyType: string): string[] =>
      (elements ?? []).flatMap((e) =>
        e.KeyType === keyType && e.AttributeName !== undefined ? [e.AttributeName] : [],
      );
    const [hash, ...moreHashes] = named("HASH");
    const [range, ...moreRanges] = named("RANGE");
    if (moreHashes.length > 0 || moreRanges.length > 0) throw new UnsupportedByFake("keys of several attributes");
    if (hash === undefined) return fail(name, "KeySchema needs a HASH attribute");
    return { hash: keyAttribute(hash), ...(range === undefined ? {} : { range: keyAttribute(range) }) };
  };

  const key = keyShape(definition.KeySchema);
  const indexes = (definition.GlobalSecondaryIndexes ?? []).map((index): IndexSchema => {
    const indexName = index.IndexName ?? fail(name, "GlobalSecondaryIndexes: IndexName is required");
    const indexKey = keyShape(index.KeySchema);
    return { name: indexName, ...indexKey, projected: projectedNames(name, index.Projection, [key, indexKey]) };
  });
  const stream = definition.StreamSpecification;
  return {
    name,
    ...key,
    indexes,
    ...(stream?.StreamEnabled === true
      ? { streamViewType: stream.StreamViewType ?? fail(name, "StreamViewType is required") }
      : {}),
  };
}

/** The key attributes in order, hash first. */
export function keyAttributes(shape: KeyShape): KeyAttribute[] {
  return shape.range === undefined ? [shape.hash] : [shape.hash, shape.range];
}

function projectedNames(
  table: string,
  projection: Projection | undefined,
  keys: readonly KeyShape[],
): "ALL" | ReadonlySet<string> {
  const keyNames = keys.flatMap(keyAttributes).map((attribute) => attribute.name);
  switch (projection?.ProjectionType) {
    case "ALL":
      return "ALL";
    case "KEYS_ONLY":
      return new Set(keyNames);
    case "INCLUDE":
      return new Set([...keyNames, ...(projection.NonKeyAttributes ?? [])]);
    case undefined:
      return fail(table, "every index needs a ProjectionType");
    default:
      return fail(table, "unknown ProjectionType");
  }
}

function fail(table: string, rule: string): never {
  throw new Error(`table definition ${table}: ${rule}`);
}
