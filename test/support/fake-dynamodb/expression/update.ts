import type { Value } from "../values.ts";
import type { Path } from "./paths.ts";

export type SetOperand =
  | { readonly kind: "path"; readonly path: Path }
  | { readonly kind: "value"; readonly value: Value }
  | { readonly kind: "if-not-exists"; readonly path: Path; readonly otherwise: SetOperand }
  | { readonly kind: "list-append"; readonly first: SetOperand; readonly second: SetOperand };

export type SetSource =
  SetOperand | { readonly kind: "plus" | "minus"; readonly left: SetOperand; readonly right: SetOperand };

export interface Update {
  readonly set: readonly { readonly path: Path; readonly source: SetSource }[];
  readonly remove: readonly Path[];
  /** Numbers only. */
  readonly add: readonly { readonly path: Path; readonly value: Value }[];
}

/** Every path that an update writes to. */
export function targetsOf(update: Update): Path[] {
  return [...update.set.map(({ path }) => path), ...update.remove, ...update.add.map(({ path }) => path)];
}
