import { validationError } from "../errors.ts";
import type { Item, Value } from "../values.ts";

/** A document path: the top-level attribute, then map members (strings) and list positions (numbers). */
export type Path = readonly (string | number)[];

export function getPath(item: Item, path: Path): Value | undefined {
  let current: Value | undefined = { type: "M", value: item };
  for (const step of path) {
    if (current?.type === "M" && typeof step === "string") current = current.value.get(step);
    else if (current?.type === "L" && typeof step === "number") current = current.value[step];
    else return undefined;
  }
  return current;
}

/** ValidationException when a parent is missing or of another type. A position behind the end of a list appends. */
export function setPath(item: Item, path: Path, value: Value): Item {
  return asMap(changed({ type: "M", value: item }, path, value));
}

/** A missing last step changes nothing; a missing parent is a ValidationException. */
export function removePath(item: Item, path: Path): Item {
  return asMap(changed({ type: "M", value: item }, path, undefined));
}

/** True if one path is the other or lies within it. */
export function pathsOverlap(a: Path, b: Path): boolean {
  return a.slice(0, b.length).every((step, i) => step === b[i]);
}

export function samePath(a: Path, b: Path): boolean {
  return a.length === b.length && pathsOverlap(a, b);
}

/** As DynamoDB's messages show a path: `[a, b, [0]]`. */
export function showPath(path: Path): string {
  return `[${path.map((step) => (typeof step === "number" ? `[${step}]` : step)).join(", ")}]`;
}

function changed(container: Value, path: Path, value: Value | undefined): Value {
  const [step, ...rest] = path;
  const child = step === undefined ? undefined : getPath(new Map([["", container]]), ["", step]);
  const replacement = (): Value | undefined => {
    if (rest.length === 0) return value;
    if (child === undefined) throw invalidPath();
    return changed(child, rest, value);
  };
  if (container.type === "M" && typeof step === "string") {
    const members = new Map(container.value);
    const member = replacement();
    if (member === undefined) members.delete(step);
    else members.set(step, member);
    return { type: "M", value: members };
  }
  if (container.type === "L" && typeof step === "number") {
    const members = [...container.value];
    const member = replacement();
    members.splice(step, 1, ...(member === undefined ? [] : [member]));
    return { type: "L", value: members };
  }
  throw invalidPath();
}

function asMap(value: Value): Item {
  if (value.type !== "M") throw new Error("an item is always a map");
  return value.value;
}

function invalidPath(): Error {
  return validationError("The document path provided in the update expression is invalid for update");
}
