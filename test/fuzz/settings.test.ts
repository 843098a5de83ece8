import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compileSettings, ConfigurationError } from "../../shared/config/compile.ts";
import { DEFINITIONS, type SettingName } from "../../shared/config/definitions.ts";
import { MalformedItemError, parseConnectionItem, type RawItem } from "../../shared/connection/item.ts";
import { attribute } from "./support/attributes.ts";

const NAMES = Object.keys(DEFINITIONS) as SettingName[];
const SOUND = {
  WS_FLEET_CONNECTIONS_TABLE: "connections",
  WS_FLEET_MESSAGES_TABLE: "messages",
  WS_FLEET_HINT_QUEUE_URL: "http://127.0.0.1/hints",
  WS_FLEET_DLQ_URL: "http://127.0.0.1/dead",
  WS_FLEET_SERVICE: "service",
  WS_FLEET_CLUSTER: "cluster",
};

const anyValue = fc.oneof(
  fc.string(),
  fc.integer({ min: -1 }).map(String),
  fc.constantFrom("", " 1", "1e3", "0x1", "1.5", "9".repeat(400), "http:", "http://", "silent", "NaN", "0"),
);

describe("the environment of a program", () => {
  it("gives settings of the promised types, or an error that names each variable it is about", () =>
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom(...NAMES.map((name) => DEFINITIONS[name].env)), anyValue, { maxKeys: 3 }),
        (changed) => {
          try {
            const settings = compileSettings({ ...SOUND, ...changed }, NAMES);
            for (const value of Object.values(settings)) {
              assert.ok(typeof value === "string" || Number.isFinite(value), String(value));
            }
            assert.ok(settings.leaseMs > settings.marginMs + 2 * settings.heartbeatMs, "the first of the rules");
          } catch (error) {
            assert.ok(error instanceof ConfigurationError, String(error));
            // Each problem begins with what it is about; a rule between several names at least one that was changed.
            for (const problem of error.problems) {
              assert.ok(
                Object.keys(changed).some((name) => problem.includes(name)),
                problem,
              );
            }
          }
        },
      ),
      { numRuns: 2000 },
    ));
});

describe("the settings of an upstream", () => {
  const POSITION: RawItem = { pointer: { S: "/seq" }, kind: { S: "sequence" } };
  const name = fc.oneof(
    fc.string(),
    fc.constantFrom("__proto__", "constructor", "Position", "toString", "hasOwnProperty"),
  );

  it("are refused with every name that is none of theirs, wherever it stands", () =>
    fc.assert(
      fc.property(name, attribute, fc.boolean(), (unknown, value, inside) => {
        fc.pre(!["position", "pointer", "kind", "initial"].includes(unknown));
        // Defined, not assigned: `__proto__` is a name like any other here.
        const more = Object.fromEntries([[unknown, value]]);
        const position = inside ? { ...POSITION, ...more } : POSITION;
        const upstream = inside ? { position: { M: position } } : { position: { M: position }, ...more };
        const item = {
          connection_id: { S: "c" },
          desired_state: { S: "STARTED" },
          ws_url: { S: "wss://feed.test/" },
          upstream: { M: upstream },
        };
        assert.throws(
          () => parseConnectionItem(item),
          (error) => error instanceof MalformedItemError && error.problems.every((text) => text.startsWith("upstream")),
        );
      }),
      { numRuns: 1500, examples: [["__proto__", { M: { position: { M: POSITION } } }, false]] },
    ));
});
