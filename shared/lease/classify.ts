import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import { unknown, type Unknown, type UnknownReason } from "./outcome.ts";

const THROTTLES = new Set([
  "ProvisionedThroughputExceededException",
  "ThrottlingException",
  "RequestLimitExceeded",
  "TooManyRequestsException",
]);
const CREDENTIALS = new Set([
  "UnrecognizedClientException",
  "ExpiredTokenException",
  "ExpiredToken",
  "InvalidSignatureException",
  "IncompleteSignatureException",
  "MissingAuthenticationTokenException",
  "AccessDeniedException",
  "CredentialsProviderError",
]);
const TIMEOUTS = new Set(["TimeoutError", "AbortError"]);

/** True for the one error that is a verdict: the condition was evaluated and was false. */
export function isConditionFailure(error: unknown): error is ConditionalCheckFailedException {
  return error instanceof ConditionalCheckFailedException;
}

/**
 * True when the stored attributes have types or sizes the expression cannot work with; the expressions themselves are
 * constant and tested, so no retry helps until somebody mends the item.
 */
export function isRejectedItem(error: unknown): boolean {
  return error instanceof Error && error.name === "ValidationException";
}

/** Everything that is not a verdict on the condition. */
export function failed(error: unknown): Unknown {
  return unknown(unknownReason(error), error);
}

function unknownReason(error: unknown): UnknownReason {
  const name = error instanceof Error ? error.name : "";
  if (THROTTLES.has(name)) return "throttled";
  if (TIMEOUTS.has(name)) return "timeout";
  if (CREDENTIALS.has(name)) return "credentials";
  if (typeof error === "object" && error !== null) {
    const status = "$metadata" in error ? (error.$metadata as { httpStatusCode?: number }).httpStatusCode : undefined;
    if (status !== undefined && status >= 500) return "server";
    if ("code" in error && typeof error.code === "string") return "network";
  }
  return "other";
}
