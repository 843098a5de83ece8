import { describe, it } from "node:test";
import type { Template } from "../../../deploy/plugins/osls.ts";
import { assertPinned } from "../support/pinned.ts";

/** Resources that make a function run: itself, what invokes it, and what becomes of invocations that fail. */
const TYPES: ReadonlySet<string> = new Set([
  "AWS::Lambda::Function",
  "AWS::Lambda::EventInvokeConfig",
  "AWS::Lambda::Permission",
  "AWS::Events::Rule",
]);
/** The bundle's place holds the time of packaging; settings have a test of their own. */
const ELSEWHERE: ReadonlySet<string> = new Set(["Code", "Environment", "Tags"]);

/** How the functions run, and when. */
export function functionsSuite(template: Template): void {
  describe("functions", () => {
    it("run, and are invoked, as pinned/functions.json says", () => {
      const pinned = Object.entries(template.Resources)
        .filter(([, { Type }]) => TYPES.has(Type))
        .map(([id, { Properties }]) => {
          const own = Object.entries(Properties ?? {}).filter(([name]) => !ELSEWHERE.has(name));
          return [id, Object.fromEntries(own)] as const;
        });
      assertPinned("functions", Object.fromEntries(pinned));
    });
  });
}
