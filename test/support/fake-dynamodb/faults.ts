/** One request as it reaches the store, before anything is read or written. */
export interface Call {
  /** As in the command's name: `UpdateItem`, `Query`, `BatchWriteItem`, … */
  readonly operation: string;
  readonly input: unknown;
  /** The table; of a batch the first one. */
  readonly table: string;
  /** Counts all requests of this store, from 1. */
  readonly n: number;
  /** The name that was given to `FakeDynamoDb.client()`. */
  readonly client: string;
}

export type Fault =
  /** ProvisionedThroughputExceededException; nothing is applied. */
  | { readonly kind: "throttle" }
  /** InternalServerError (500); nothing is applied. */
  | { readonly kind: "server-error" }
  /** UnrecognizedClientException (default) or ExpiredTokenException; nothing is applied. */
  | { readonly kind: "credentials"; readonly name?: "UnrecognizedClientException" | "ExpiredTokenException" }
  /** The request never arrives: no answer until the caller aborts, nothing is applied. */
  | { readonly kind: "no-answer" }
  /** InternalServerError (500) although the request was applied. */
  | { readonly kind: "apply-then-error" }
  /**
   * The request was applied, its answer got lost, and the SDK sent the identical request again: the caller gets the answer
   * to the second one.
   */
  | { readonly kind: "resent" }
  /** No answer until the caller aborts although the request was applied. */
  | { readonly kind: "apply-then-timeout" }
  /** TimeoutError at once; the request is applied `applyAfterMs` later, against the item as it is then. */
  | { readonly kind: "delayed-apply"; readonly applyAfterMs: number }
  /**
   * The answer comes `ms` later. The request takes effect on arrival or (default) just before the answer, also when the
   * caller has given up meanwhile: an abort does not call a request back.
   */
  | { readonly kind: "delay"; readonly ms: number; readonly applyAt?: "start" | "end" }
  /**
   * Some entries of a batch are given back unprocessed: those whose position in the request is selected. All of them means
   * ProvisionedThroughputExceededException, as in DynamoDB.
   */
  | { readonly kind: "unprocessed"; readonly select: (index: number) => boolean };

/** Asked once for every request; undefined lets it pass. */
export type FaultHook = (call: Call) => Fault | undefined;

export function checkDelay(field: string, ms: number): number {
  if (!Number.isFinite(ms) || ms < 0)
    throw new Error(`fault: ${field} must be a number of milliseconds >= 0, not ${ms}`);
  return ms;
}
