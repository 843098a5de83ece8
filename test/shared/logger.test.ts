import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { errorFields, silentLogger } from "../../shared/logger.ts";

describe("errorFields", () => {
  it("says name and message, and nothing of what else an error carries", () => {
    const error = Object.assign(new RangeError("too far"), { headers: { authorization: "secret" } });
    assert.deepEqual(errorFields(error), { error: "too far", errorName: "RangeError" });
  });

  for (const [thrown, error] of [
    ["text", "text"],
    [7, "7"],
    [undefined, "undefined"],
    [null, "null"],
    [{ message: "not an error" }, "[object Object]"],
  ] as const) {
    it(`takes ${error} that was thrown`, () => {
      assert.deepEqual(errorFields(thrown), { error, errorName: "NonError" });
    });
  }
});

describe("silentLogger", () => {
  it("has all levels", () => {
    for (const level of ["debug", "info", "warn", "error"] as const) silentLogger[level]({ a: 1 }, "message");
  });
});
