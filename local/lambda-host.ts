import type { Context } from "aws-lambda";
import { existsSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import {
  functionArn,
  type FunctionError,
  type HostedFunction,
  type HostInput,
  type InvokeReply,
  type InvokeRequest,
} from "./lambda-protocol.ts";
import { childInput, endWithParent, report } from "./stack/child-side.ts";

/**
 * Child process: runs the functions of serverless.yml the way Lambda's Node runtime does. A module is loaded at its first
 * invocation and stays; handlers are async; what they return travels as JSON; a timeout is an error. Unlike on Lambda, all
 * functions share one process, and an invocation that timed out is only abandoned.
 */

/** Without the callbacks of runtimes that are no more. */
type LambdaContext = Omit<Context, "done" | "fail" | "succeed">;
type Handler = (event: unknown, context: LambdaContext) => unknown;

const EXTENSIONS = [".ts", ".mts", ".js", ".mjs"];

const { projectRoot, region, functions } = childInput() as HostInput;
const hosted = new Map(functions.map((one) => [one.name, one]));
const handlers = new Map<string, Promise<Handler>>();

endWithParent(() => Promise.resolve());

process.on("message", (request: InvokeRequest) => {
  // The parent may hang up before an answer is there; then nobody waits for it.
  void run(request).then((reply) => process.send?.(reply, undefined, undefined, () => undefined));
});
report({ ready: {} });

async function run({ id, functionName, event }: InvokeRequest): Promise<InvokeReply> {
  const definition = hosted.get(functionName);
  if (definition === undefined) {
    return {
      id,
      error: { errorType: "ResourceNotFoundException", errorMessage: `no function is called ${functionName}` },
    };
  }
  const deadlineMs = performance.now() + definition.timeoutMs;
  let timer: NodeJS.Timeout | undefined;
  const timedOut = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeoutError(id, definition.timeoutMs)), definition.timeoutMs);
  });
  try {
    const handler = await load(definition);
    const result = await Promise.race([handler(event, contextOf(definition, id, deadlineMs)), timedOut]);
    return { id, result: throughJson(result) };
  } catch (error) {
    return { id, error: describe(error) };
  } finally {
    clearTimeout(timer);
  }
}

class TimeoutError extends Error {
  override readonly name = "Sandbox.Timedout";

  constructor(requestId: string, timeoutMs: number) {
    super(`RequestId: ${requestId} Error: Task timed out after ${(timeoutMs / 1000).toFixed(2)} seconds`);
  }
}

/** A failed load is forgotten, as Lambda starts a fresh environment for the next invocation. */
function load(definition: HostedFunction): Promise<Handler> {
  let loading = handlers.get(definition.name);
  if (loading === undefined) {
    loading = importHandler(definition.handler);
    loading.catch(() => handlers.delete(definition.name));
    handlers.set(definition.name, loading);
  }
  return loading;
}

async function importHandler(handler: string): Promise<Handler> {
  const dot = handler.lastIndexOf(".");
  const stem = path.join(projectRoot, handler.slice(0, dot));
  const exportName = handler.slice(dot + 1);
  const file = EXTENSIONS.map((extension) => stem + extension).find((candidate) => existsSync(candidate));
  if (file === undefined) throw new Error(`handler ${handler}: no file ${stem} with ${EXTENSIONS.join(", ")}`);
  const module = (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  const exported = module[exportName];
  if (typeof exported !== "function") throw new Error(`handler ${handler}: ${file} exports no function ${exportName}`);
  return exported as Handler;
}

function contextOf(definition: HostedFunction, requestId: string, deadlineMs: number): LambdaContext {
  return {
    functionName: definition.name,
    functionVersion: "$LATEST",
    invokedFunctionArn: functionArn(region, definition.name),
    memoryLimitInMB: String(definition.memoryMb),
    awsRequestId: requestId,
    logGroupName: `/aws/lambda/${definition.name}`,
    logStreamName: "local",
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => Math.max(0, Math.floor(deadlineMs - performance.now())),
  };
}

function throughJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null)) as unknown;
}

function describe(error: unknown): FunctionError {
  if (!(error instanceof Error)) return { errorType: "NonError", errorMessage: String(error) };
  return {
    errorType: error.name,
    errorMessage: error.message,
    ...(error.stack !== undefined && { trace: error.stack }),
  };
}
