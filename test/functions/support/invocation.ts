import type { Context } from "aws-lambda";

/** Without the callbacks of runtimes that are no more. */
type LambdaContext = Omit<Context, "done" | "fail" | "succeed">;
type Handler = (event: unknown, context: LambdaContext) => Promise<unknown>;

/** As EventBridge sends it to the target of a scheduled rule. */
export const SCHEDULED_EVENT = {
  version: "0",
  id: "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
  "detail-type": "Scheduled Event",
  source: "aws.events",
  account: "123456789012",
  time: "2026-01-08T16:53:06Z",
  region: "us-east-1",
  resources: ["arn:aws:events:us-east-1:123456789012:rule/ws-fleet-test-reconcile"],
  detail: {},
};

export function lambdaContext(remainingMs: number): LambdaContext {
  const endMs = performance.now() + remainingMs;
  return {
    callbackWaitsForEmptyEventLoop: true,
    functionName: "ws-fleet-test-function",
    functionVersion: "$LATEST",
    invokedFunctionArn: "arn:aws:lambda:us-east-1:123456789012:function:ws-fleet-test-function",
    memoryLimitInMB: "256",
    awsRequestId: "c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
    logGroupName: "/aws/lambda/ws-fleet-test-function",
    logStreamName: "2026/01/08/[$LATEST]abcdef",
    getRemainingTimeInMillis: () => Math.max(0, Math.floor(endMs - performance.now())),
  };
}

let loads = 0;

/**
 * Loads a function's module afresh under the given settings, as a cold start does. Variables of the project that are not
 * named are taken away first.
 */
export async function coldStart(name: string, settings: Readonly<Record<string, string>>): Promise<Handler> {
  for (const key of Object.keys(process.env)) if (key.startsWith("WS_FLEET_")) Reflect.deleteProperty(process.env, key);
  Object.assign(process.env, { WS_FLEET_LOG_LEVEL: "silent", WS_FLEET_SERVICE: "ws-fleet-test", ...settings });
  const module = (await import(`../../../functions/${name}.ts?load=${++loads}`)) as { handler: Handler };
  return module.handler;
}
