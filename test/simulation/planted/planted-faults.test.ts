import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { simulate } from "../simulation.ts";
import { PLANTED_FAULTS } from "./faults.ts";
import { firstCaught } from "./run.ts";

describe("the simulation's checker finds planted faults", { concurrency: 1 }, () => {
  for (const planted of PLANTED_FAULTS) {
    it(`${planted.name}: ${planted.caughtBy.join(" or ")}`, async () => {
      const caught = await firstCaught(planted);
      assert.ok(caught?.violation, "no seed shows the fault");
      const { rule, text } = caught.violation;
      assert.ok(planted.caughtBy.includes(rule), `seed ${caught.seed} broke another rule, ${rule}: ${text}`);

      const { effectsOnly: _, tampering: __, unchecked: ___, ...same } = planted.options ?? {};
      const sound = await simulate({ seed: caught.seed, ...same });
      assert.equal(sound.violation, undefined, "the same run without the fault breaks a rule too");
    });
  }
});
