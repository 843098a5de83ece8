import {
  ConditionalCheckFailedException,
  InternalServerError,
  ProvisionedThroughputExceededException,
  RequestLimitExceeded,
  DynamoDBServiceException,
} from "@aws-sdk/client-dynamodb";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { failed, isConditionFailure, isRejectedItem } from "../../../shared/lease/classify.ts";

const service = (name: string, httpStatusCode: number) =>
  new DynamoDBServiceException({ name, message: name, $fault: "client", $metadata: { httpStatusCode } });
const system = (code: string) => Object.assign(new Error(code), { code });
const named = (name: string) => Object.assign(new Error(name), { name });
const metadata = { $metadata: {}, message: "m" };

describe("classify", () => {
  const cases = [
    ["throttled", new ProvisionedThroughputExceededException(metadata)],
    ["throttled", new RequestLimitExceeded(metadata)],
    ["throttled", service("ThrottlingException", 400)],
    ["timeout", named("TimeoutError")],
    ["timeout", new DOMException("late", "TimeoutError")],
    ["timeout", named("AbortError")],
    ["credentials", service("UnrecognizedClientException", 400)],
    ["credentials", service("ExpiredTokenException", 400)],
    ["credentials", service("InvalidSignatureException", 400)],
    ["credentials", service("AccessDeniedException", 400)],
    ["credentials", named("CredentialsProviderError")],
    ["server", new InternalServerError({ message: "m", $metadata: { httpStatusCode: 500 } })],
    ["server", service("ServiceUnavailable", 503)],
    ["network", system("ECONNREFUSED")],
    ["network", system("ENOTFOUND")],
    ["network", system("CERT_HAS_EXPIRED")],
    ["other", Object.assign(new Error("a code of another kind"), { code: 7 })],
    ["other", service("ValidationException", 400)],
    ["other", new Error("what?")],
    ["other", "not even an error"],
    ["other", undefined],
    ["other", null],
  ] as const;
  for (const [reason, error] of cases) {
    it(`${String(error)} is unknown: ${reason}`, () => {
      assert.deepEqual(failed(error), { kind: "unknown", reason, error });
    });
  }

  it("only a failed condition is a verdict", () => {
    assert.equal(isConditionFailure(new ConditionalCheckFailedException(metadata)), true);
    for (const [, error] of cases) assert.equal(isConditionFailure(error), false);
  });

  it("only a refused item is malformed", () => {
    const rejected = cases.filter(([, error]) => isRejectedItem(error)).map(([, error]) => String(error));
    assert.deepEqual(rejected, ["ValidationException: ValidationException"]);
  });
});
