import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";

/** What every lease operation needs. The client carries the per-attempt timeout and the number of attempts. */
export interface LeaseTable {
  readonly client: DynamoDBClient;
  readonly tableName: string;
}

/** Bounds one operation over all its attempts. */
export interface CallOptions {
  readonly signal?: AbortSignal;
}

export function sendOptions(options: CallOptions | undefined): { abortSignal?: AbortSignal } {
  return options?.signal === undefined ? {} : { abortSignal: options.signal };
}
