import {
  ConditionalCheckFailedException,
  DynamoDBServiceException,
  InternalServerError,
  ProvisionedThroughputExceededException,
  ResourceNotFoundException,
  type AttributeValue,
} from "@aws-sdk/client-dynamodb";

/** What the SDK adds to every answer and every service error after a single attempt. */
export function metadata(httpStatusCode: number): {
  httpStatusCode: number;
  attempts: number;
  totalRetryDelay: number;
} {
  return { httpStatusCode, attempts: 1, totalRetryDelay: 0 };
}

/** The SDK has no class of its own for these: they arrive as the base class with the service's name. */
function clientError(name: string, message: string): DynamoDBServiceException {
  return new DynamoDBServiceException({ name, message, $fault: "client", $metadata: metadata(400) });
}

export function validationError(message: string): DynamoDBServiceException {
  return clientError("ValidationException", message);
}

export function credentialsError(
  name: "UnrecognizedClientException" | "ExpiredTokenException",
): DynamoDBServiceException {
  const state = name === "ExpiredTokenException" ? "expired" : "invalid";
  return clientError(name, `The security token included in the request is ${state}.`);
}

/** `Item` is present only when it was asked for and there is one. */
export function conditionalCheckFailed(item?: Record<string, AttributeValue>): ConditionalCheckFailedException {
  return new ConditionalCheckFailedException({
    message: "The conditional request failed",
    $metadata: metadata(400),
    ...(item === undefined ? {} : { Item: item }),
  });
}

export function throughputExceeded(): ProvisionedThroughputExceededException {
  return new ProvisionedThroughputExceededException({
    message: "The level of configured provisioned throughput for the table was exceeded.",
    $metadata: metadata(400),
  });
}

export function internalServerError(): InternalServerError {
  return new InternalServerError({ message: "Internal server error", $metadata: metadata(500) });
}

export function resourceNotFound(): ResourceNotFoundException {
  return new ResourceNotFoundException({ message: "Requested resource not found", $metadata: metadata(400) });
}

/** As the SDK's HTTP handler reports a request that it gave up on. */
export function timeoutError(): Error {
  return Object.assign(new Error("the request timed out; it may or may not be applied"), { name: "TimeoutError" });
}

/** As the SDK's HTTP handler reports an aborted request: the signal's reason becomes the cause. */
export function abortError(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  const message = typeof reason === "string" ? reason : "Request aborted";
  const error = new Error(message, reason instanceof Error ? { cause: reason } : {});
  error.name = "AbortError";
  return error;
}

/** A request that real DynamoDB would serve and this one cannot: never a service error, so no caller can swallow it as one. */
export class UnsupportedByFake extends Error {
  override readonly name = "UnsupportedByFake";

  constructor(what: string) {
    super(`the in-memory DynamoDB does not support ${what}`);
  }
}
