import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FreeSince } from "../../functions/core/free-since.ts";

describe("FreeSince", () => {
  it("counts from the first sight, over an unbroken run of rounds", () => {
    const since = new FreeSince(10);
    assert.equal(since.ageMs("a", 1_000), 0);
    since.endRound();
    assert.equal(since.ageMs("a", 31_000), 30_000);
    since.endRound();
    assert.equal(since.ageMs("a", 61_000), 60_000);
  });

  it("begins anew for a connection that was taken in between", () => {
    const since = new FreeSince(10);
    since.ageMs("a", 1_000);
    since.endRound();
    since.endRound();
    assert.equal(since.size, 0);
    assert.equal(since.ageMs("a", 61_000), 0);
  });

  it("keeps what it knows through a round that failed half-way", () => {
    const since = new FreeSince(10);
    since.ageMs("a", 1_000);
    since.ageMs("b", 1_000);
    since.endRound();
    since.ageMs("a", 31_000);
    since.dropRound();
    assert.equal(since.ageMs("b", 61_000), 60_000);
  });

  it("stays within its bound, and keeps following what it follows", () => {
    const since = new FreeSince(2);
    for (const id of ["a", "b", "c"]) since.ageMs(id, 1_000);
    since.endRound();
    assert.equal(since.size, 2);
    assert.equal(since.ageMs("a", 11_000), 10_000);
    assert.equal(since.ageMs("c", 11_000), 0);
  });

  it("gives no negative age when the clock was stepped back", () => {
    const since = new FreeSince(2);
    since.ageMs("a", 100_000);
    since.endRound();
    assert.equal(since.ageMs("a", 40_000), 0);
    since.endRound();
    assert.equal(since.ageMs("a", 50_000), 10_000);
  });
});
