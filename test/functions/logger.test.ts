import type { Logger as PowertoolsLogger } from "@aws-lambda-powertools/logger";
import assert from "node:assert/strict";
import { describe, it, mock } from "node:test";
import { adaptLogger, powertoolsLogger } from "../../functions/logger.ts";
import { errorFields } from "../../shared/logger.ts";

/** What Powertools prints while `act` runs; it has a console of its own. */
function printed(logger: PowertoolsLogger, act: () => void): Record<string, unknown>[] {
  const own = (logger as unknown as { console: Console }).console;
  const lines: string[] = [];
  const methods = (["debug", "info", "warn", "error"] as const).map((method) =>
    mock.method(own, method, (line: string) => void lines.push(line)),
  );
  try {
    act();
  } finally {
    for (const method of methods) method.mock.restore();
  }
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe("adaptLogger", () => {
  it("prints the fields beside the message, with level and service", () => {
    const powertools = powertoolsLogger("ws-fleet-test", "debug");
    const logger = adaptLogger(powertools);
    const lines = printed(powertools, () => {
      logger.debug({ a: 1 }, "one");
      logger.info({ connectionId: "c-1", list: ["x"] }, "two");
      logger.warn({}, "three");
      logger.error(errorFields(new TypeError("broken")), "four");
    });
    assert.deepEqual(
      lines.map(({ level, message, service }) => [level, message, service]),
      [
        ["DEBUG", "one", "ws-fleet-test"],
        ["INFO", "two", "ws-fleet-test"],
        ["WARN", "three", "ws-fleet-test"],
        ["ERROR", "four", "ws-fleet-test"],
      ],
    );
    assert.deepEqual([lines[1]?.["connectionId"], lines[1]?.["list"]], ["c-1", ["x"]]);
    assert.deepEqual([lines[3]?.["error"], lines[3]?.["errorName"]], ["broken", "TypeError"]);
  });

  it("leaves out what is below the level", () => {
    const powertools = powertoolsLogger("ws-fleet-test", "warn");
    const logger = adaptLogger(powertools);
    const lines = printed(powertools, () => {
      logger.info({}, "not this");
      logger.warn({}, "this");
    });
    assert.deepEqual(
      lines.map(({ message }) => message),
      ["this"],
    );
  });

  it("knows every level that the setting allows", () => {
    for (const level of ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const) {
      const expected = level === "fatal" ? "CRITICAL" : level.toUpperCase();
      assert.equal(powertoolsLogger("s", level).getLevelName(), expected);
    }
  });
});
