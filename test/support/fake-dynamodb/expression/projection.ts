import type { Item, Value } from "../values.ts";
import { pathsOverlap, showPath, type Path } from "./paths.ts";
import type { Placeholders } from "./placeholders.ts";
import { ExpressionReader } from "./reader.ts";

/** Parses a projection expression into its paths, of which none may lie within another. */
export function parseProjection(text: string, placeholders: Placeholders): Path[] {
  const reader = new ExpressionReader(text, "ProjectionExpression", placeholders);
  const paths = reader.list(() => reader.path());
  reader.expectEnd();
  for (const [i, one] of paths.entries()) {
    for (const two of paths.slice(i + 1)) {
      if (pathsOverlap(one, two) || pathsOverlap(two, one)) {
        throw reader.error(
          "Two document paths overlap with each other; must remove or rewrite one of these paths; " +
            `path one: ${showPath(one)}, path two: ${showPath(two)}`,
        );
      }
    }
  }
  return paths;
}

/** What the paths select: maps keep only the members named, lists close their gaps, missing paths are left out. */
export function project(item: Item, paths: readonly Path[]): Item {
  const selected = select({ type: "M", value: item }, paths);
  return selected?.type === "M" ? selected.value : new Map<string, Value>();
}

function select(value: Value, paths: readonly Path[]): Value | undefined {
  if (paths.some((path) => path.length === 0)) return value;
  const beneath = (step: string | number): Path[] => paths.filter(([first]) => first === step).map((p) => p.slice(1));
  if (value.type === "M") {
    const members = [...value.value].flatMap(([name, member]) => {
      const kept = select(member, beneath(name));
      return kept === undefined ? [] : [[name, kept] as const];
    });
    return members.length === 0 ? undefined : { type: "M", value: new Map(members) };
  }
  if (value.type === "L") {
    const members = value.value.flatMap((member, i) => select(member, beneath(i)) ?? []);
    return members.length === 0 ? undefined : { type: "L", value: members };
  }
  return undefined;
}
