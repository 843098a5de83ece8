import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RecentHints } from "../../functions/core/recent-hints.ts";

const REHINT_MS = 10_000;
const NOW_MS = 1_700_000_000_000;

describe("RecentHints", () => {
  it("allows a hint again exactly after the interval", () => {
    const recent = new RecentHints(REHINT_MS, 10);
    assert.ok(recent.mayHint("a", NOW_MS));
    recent.note("a", NOW_MS);
    assert.ok(!recent.mayHint("a", NOW_MS));
    assert.ok(!recent.mayHint("a", NOW_MS + REHINT_MS - 1));
    assert.ok(recent.mayHint("a", NOW_MS + REHINT_MS));
    assert.ok(recent.mayHint("b", NOW_MS), "another connection is not concerned");
  });

  it("forgets what no longer matters, and nothing else", () => {
    const recent = new RecentHints(REHINT_MS, 10);
    recent.note("old", NOW_MS);
    recent.note("new", NOW_MS + 5_000);
    recent.prune(NOW_MS + REHINT_MS);
    assert.equal(recent.size, 1);
    assert.ok(!recent.mayHint("new", NOW_MS + REHINT_MS));
  });

  it("stays within its bound by forgetting the oldest hints", () => {
    const recent = new RecentHints(REHINT_MS, 3);
    for (const id of ["a", "b", "c"]) recent.note(id, NOW_MS);
    recent.note("a", NOW_MS + 1);
    recent.note("d", NOW_MS + 2);
    assert.equal(recent.size, 3);
    assert.ok(recent.mayHint("b", NOW_MS + 3), "b was hinted longest ago");
    for (const id of ["a", "c", "d"]) assert.ok(!recent.mayHint(id, NOW_MS + 3), id);
  });

  it("is not silenced by a clock that was stepped back", () => {
    const recent = new RecentHints(REHINT_MS, 3);
    recent.note("a", NOW_MS + 3_600_000);
    assert.ok(recent.mayHint("a", NOW_MS));
    recent.prune(NOW_MS);
    assert.equal(recent.size, 0);
  });
});
