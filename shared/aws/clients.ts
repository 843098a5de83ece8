import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { SQSClient } from "@aws-sdk/client-sqs";

export interface ClientLimits {
  /** Limit of one attempt, counted from the moment it is asked for: waiting for a free socket is included. */
  readonly attemptTimeoutMs: number;
  readonly attempts: number;
  readonly maxSockets: number;
}

function requestHandler(limits: ClientLimits) {
  const agent = { maxSockets: limits.maxSockets, keepAlive: true };
  return {
    requestTimeout: limits.attemptTimeoutMs,
    // Without this the SDK only logs a request that ran past its timeout.
    throwOnRequestTimeout: true,
    connectionTimeout: limits.attemptTimeoutMs,
    // The request timeout ends with the answer's headers: without this, an answer that stalls after them is waited for
    // for ever, and with it the one lease operation that its connection may have under way.
    socketTimeout: limits.attemptTimeoutMs,
    httpAgent: agent,
    httpsAgent: agent,
  };
}

/** A DynamoDB client with sockets of its own, so that no other traffic can queue in front of its requests. */
export function dynamoDbClient(limits: ClientLimits): DynamoDBClient {
  return new DynamoDBClient({
    maxAttempts: limits.attempts,
    retryMode: "standard",
    requestHandler: requestHandler(limits),
  });
}

/** An SQS client. `limits.attemptTimeoutMs` must be longer than the long poll. */
export function sqsClient(limits: ClientLimits): SQSClient {
  return new SQSClient({
    maxAttempts: limits.attempts,
    requestHandler: requestHandler(limits),
    // The queue URL says which queue; where the service is, only the endpoint settings say.
    useQueueUrlAsEndpoint: false,
  });
}
