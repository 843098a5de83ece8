import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const FOLDER = path.join(import.meta.dirname, "../pinned");

/**
 * Compares with what a file in `test/deploy/pinned` says, so that a change of it is seen, and meant. After one that is
 * meant: UPDATE_PINNED=1 npm test.
 */
export function assertPinned(name: string, value: object): void {
  const file = path.join(FOLDER, `${name}.json`);
  const text = `${JSON.stringify(value, undefined, 2)}\n`;
  if (process.env["UPDATE_PINNED"] === "1") writeFileSync(file, text);
  assert.deepEqual(JSON.parse(text), JSON.parse(readFileSync(file, "utf8")));
}
