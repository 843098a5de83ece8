import type { Context } from "aws-lambda";

/** Does what the event says, so that a test can see each way an invocation can end. */
export async function handler(event: { act?: string; detail?: unknown }, context: Context): Promise<unknown> {
  switch (event.act) {
    case "throw":
      throw new RangeError("as asked");
    case "hang":
      return await new Promise(() => undefined);
    case "block":
      for (;;);
    case "exit":
      return process.exit(3);
    case "env":
      return { table: process.env["TABLE_NAME"], home: process.env["AWS_PROFILE"] };
    default:
      return {
        event,
        functionName: context.functionName,
        memory: context.memoryLimitInMB,
        arn: context.invokedFunctionArn,
        requestId: context.awsRequestId,
        remainingMs: context.getRemainingTimeInMillis(),
        dropped: undefined,
      };
  }
}
