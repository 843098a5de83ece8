import { loadAwsServiceSpecSync } from "@aws-cdk/aws-service-spec";
import type { Template } from "../../../deploy/plugins/osls.ts";

/** AWS's published resource schemas, and a walk over a template with them. */

type SpecDatabase = ReturnType<typeof loadAwsServiceSpecSync>;
type ResourceSpec = ReturnType<ReturnType<SpecDatabase["lookup"]>["only"]> & {
  readonly properties: Readonly<Record<string, PropertySpec>>;
};
interface PropertySpec {
  readonly type: TypeSpec;
  readonly required?: boolean;
  readonly causesReplacement?: "yes" | "no" | "maybe";
}
type TypeSpec =
  | { readonly type: "string" | "date-time" | "integer" | "number" | "boolean" | "json" | "tag" | "null" }
  | { readonly type: "array"; readonly element: TypeSpec }
  | { readonly type: "map"; readonly element: TypeSpec }
  | { readonly type: "union"; readonly types: readonly TypeSpec[] }
  | { readonly type: "ref"; readonly reference: { readonly $ref: string } };
type Members = Readonly<Record<string, PropertySpec>>;

export class ResourceSchemas {
  readonly #db: SpecDatabase = loadAwsServiceSpecSync();

  /** Unknown types and properties, missing required ones, values of another type; each with its place. */
  problems(template: Template): string[] {
    return Object.entries(template.Resources).flatMap(([id, { Type, Properties }]) => {
      const spec = this.#resource(Type);
      return spec === undefined ? [`${id}: ${Type} is no type`] : this.#members(id, Properties ?? {}, spec.properties);
    });
  }

  /** Every property whose change replaces its resource, with its present value. */
  replacing(template: Template): Record<string, unknown> {
    const found: Record<string, unknown> = {};
    for (const [id, { Type, Properties }] of Object.entries(template.Resources)) {
      const spec = this.#resource(Type);
      for (const [name, value] of Object.entries(Properties ?? {})) {
        if (spec?.properties[name]?.causesReplacement === "yes") found[`${id}.${name}`] = value;
      }
    }
    return found;
  }

  #resource(type: string): ResourceSpec | undefined {
    const found = this.#db.lookup("resource", "cloudFormationType", "equals", type);
    return found.length === 0 ? undefined : found.only();
  }

  #members(at: string, value: unknown, members: Members): string[] {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return [`${at}: must be a mapping`];
    const given = value as Record<string, unknown>;
    const missing = Object.entries(members)
      .filter(([name, spec]) => spec.required === true && given[name] === undefined)
      .map(([name]) => `${at}.${name}: is required`);
    const wrong = Object.entries(given).flatMap(([name, inner]) => {
      const spec = members[name];
      return spec === undefined ? [`${at}.${name}: no such property`] : this.#value(`${at}.${name}`, inner, spec.type);
    });
    return [...missing, ...wrong];
  }

  #value(at: string, value: unknown, type: TypeSpec): string[] {
    const branches = branchesOf(value);
    if (branches !== undefined) return branches.flatMap((branch) => this.#value(at, branch, type));
    if (isIntrinsic(value)) return [];
    switch (type.type) {
      case "string":
      case "date-time":
        return ["string", "number", "boolean"].includes(typeof value) ? [] : [`${at}: must be text`];
      case "integer":
        return /^-?\d+$/.test(scalar(value)) ? [] : [`${at}: must be a whole number`];
      case "number":
        return scalar(value) !== "" && Number.isFinite(Number(scalar(value))) ? [] : [`${at}: must be a number`];
      case "boolean":
        return /^(true|false)$/.test(scalar(value)) ? [] : [`${at}: must be true or false`];
      case "json":
        return [];
      case "null":
        return [`${at}: must be absent`];
      case "tag":
        return this.#members(at, value, { Key: TEXT, Value: TEXT });
      case "array":
        if (!Array.isArray(value)) return [`${at}: must be a list`];
        return value.flatMap((inner, i) => this.#value(`${at}.${i}`, inner, type.element));
      case "map":
        if (typeof value !== "object" || value === null) return [`${at}: must be a mapping`];
        return Object.entries(value).flatMap(([key, inner]) => this.#value(`${at}.${key}`, inner, type.element));
      case "union": {
        const tried = type.types.map((one) => this.#value(at, value, one));
        return tried.some((problems) => problems.length === 0) ? [] : (tried[0] ?? []);
      }
      case "ref": {
        const definition = this.#db.get("typeDefinition", type.reference.$ref) as { properties: Members };
        return this.#members(at, value, definition.properties);
      }
    }
  }
}

const TEXT: PropertySpec = { type: { type: "string" }, required: true };

function scalar(value: unknown): string {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}

/** Both outcomes of Fn::If, without the "no value" ones. */
function branchesOf(value: unknown): unknown[] | undefined {
  const condition = (value as { "Fn::If"?: unknown[] } | null)?.["Fn::If"];
  return condition?.slice(1).filter((branch) => (branch as { Ref?: string }).Ref !== "AWS::NoValue");
}

function isIntrinsic(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const [key, ...others] = Object.keys(value);
  return others.length === 0 && key !== undefined && (key === "Ref" || key.startsWith("Fn::"));
}
