import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeEnd, verdictOf, type SocketEnd, type Verdict } from "../../../worker/connection/close-codes.ts";

const VERDICTS: Record<Verdict, readonly SocketEnd[]> = {
  park: [
    ...[1002, 1003, 1007, 1008, 1009, 4004].map((code) => ({ code })),
    ...[400, 401, 403, 404, 405, 410].map((httpStatus) => ({ httpStatus })),
  ],
  busy: [{ code: 1013 }, { httpStatus: 429 }, { httpStatus: 503 }],
  again: [1000, 1001, 1012].map((code) => ({ code })),
  retry: [
    ...[1005, 1006, 1011, 1014, 3000, 4000, 4999].map((code) => ({ code })),
    ...[200, 301, 408, 500, 502, 504].map((httpStatus) => ({ httpStatus })),
    { error: "handshake timeout" },
    {},
  ],
};

describe("what the end of a socket asks for", () => {
  for (const [verdict, ends] of Object.entries(VERDICTS)) {
    for (const end of ends) {
      it(`${verdict} after ${describeEnd(end)}`, () => assert.equal(verdictOf(end), verdict));
    }
  }

  it("goes by the HTTP status where there is one: the socket was never open", () => {
    assert.equal(verdictOf({ code: 1006, httpStatus: 401 }), "park");
    assert.equal(verdictOf({ code: 1000, httpStatus: 500 }), "retry");
  });
});

describe("the words for an end", () => {
  it("say all that is known, in one line", () => {
    assert.equal(describeEnd({ code: 4004, reason: "bad token" }), "closed with 4004: bad token");
    assert.equal(describeEnd({ code: 1006, reason: "", error: "ECONNRESET" }), "closed with 1006: ECONNRESET");
    assert.equal(describeEnd({ error: "handshake timeout" }), "handshake timeout");
    assert.equal(describeEnd({ code: 1006, httpStatus: 403 }), "handshake answered with HTTP 403");
    assert.equal(describeEnd({}), "ended");
  });
});
