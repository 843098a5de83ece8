import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import type { Clock } from "../../../shared/clock.ts";
import { abortError, credentialsError, internalServerError, throughputExceeded, timeoutError } from "./errors.ts";
import { checkDelay, type Fault } from "./faults.ts";

/** Applies the request and returns its answer; throws what the service would answer. Synchronous, hence atomic. */
export type Execute = (unprocessed?: (index: number) => boolean) => object;

/** Answers one request under a fault. Rejects with AbortError as soon as `signal` aborts. */
export async function answer(
  execute: Execute,
  fault: Fault | undefined,
  clock: Pick<Clock, "after">,
  signal: AbortSignal | undefined,
): Promise<object> {
  switch (fault?.kind) {
    case undefined:
      return execute();
    case "throttle":
      throw throughputExceeded();
    case "server-error":
      throw internalServerError();
    case "credentials":
      throw credentialsError(fault.name ?? "UnrecognizedClientException");
    case "no-answer":
      return untilAborted(signal);
    case "apply-then-error":
      applyUnseen(execute);
      throw internalServerError();
    case "resent":
      applyUnseen(execute);
      return execute();
    case "apply-then-timeout":
      applyUnseen(execute);
      return untilAborted(signal);
    case "delayed-apply":
      clock.after(checkDelay("applyAfterMs", fault.applyAfterMs), () => applyUnseen(execute));
      throw timeoutError();
    case "delay":
      return delayed(execute, fault, clock, signal);
    case "unprocessed":
      return execute(fault.select);
  }
}

/** The caller never learns a failed condition; any other refusal is a mistake in the request and must not pass unseen. */
function applyUnseen(execute: Execute): void {
  try {
    execute();
  } catch (error) {
    if (!(error instanceof ConditionalCheckFailedException)) throw error;
  }
}

function delayed(
  execute: Execute,
  fault: Fault & { kind: "delay" },
  clock: Pick<Clock, "after">,
  signal: AbortSignal | undefined,
): Promise<object> {
  const atStart = fault.applyAt === "start" ? outcomeOf(execute) : undefined;
  const answered = new Promise<object>((resolve, reject) => {
    clock.after(checkDelay("ms", fault.ms), () => {
      const outcome = atStart ?? outcomeOf(execute);
      if ("error" in outcome) reject(outcome.error);
      else resolve(outcome.output);
    });
  });
  return signal === undefined ? answered : Promise.race([answered, untilAborted(signal, answered)]);
}

function outcomeOf(execute: Execute): { output: object } | { error: Error } {
  try {
    return { output: execute() };
  } catch (error) {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }
}

/** Never resolves; its listener is dropped once `settled` is, so that a long-lived signal does not collect them. */
function untilAborted(signal: AbortSignal | undefined, settled?: Promise<unknown>): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal === undefined) return;
    const onAbort = (): void => reject(abortError(signal));
    signal.addEventListener("abort", onAbort, { once: true });
    const drop = (): void => signal.removeEventListener("abort", onAbort);
    settled?.then(drop, drop);
  });
}
