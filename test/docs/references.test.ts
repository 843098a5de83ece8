import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { onDisk, references } from "../../docs/generate.ts";

describe("generated references", () => {
  it("say what the code says", async () => {
    for (const [path, text] of Object.entries(await references())) {
      assert.equal(onDisk(path), text, `${path} is out of date: npm run docs`);
    }
  });
});
