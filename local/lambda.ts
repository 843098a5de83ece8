import { randomUUID } from "node:crypto";
import type { Logger } from "../shared/logger.ts";
import {
  functionArn,
  type FunctionError,
  type HostInput,
  type InvokeReply,
  type InvokeRequest,
} from "./lambda-protocol.ts";
import type { FunctionDefinition, ServerlessFile } from "./serverless-file.ts";
import type { References } from "./serverless/intrinsics.ts";
import { startChild, type StartedChild } from "./stack/child.ts";
import { resolvedEnvironment } from "./stack/resolved-environment.ts";

/** A function threw, timed out, or could not be loaded. `errorType` is the name of what it threw. */
export class LambdaFunctionError extends Error {
  override readonly name = "LambdaFunctionError";
  readonly functionName: string;
  readonly errorType: string;
  /** The stack inside the function, where there is one. */
  readonly trace: string | undefined;

  constructor(functionName: string, { errorType, errorMessage, trace }: FunctionError) {
    super(`${functionName}: ${errorType}: ${errorMessage}`);
    this.functionName = functionName;
    this.errorType = errorType;
    this.trace = trace;
  }
}

/** The process of the functions has ended; the next invocation starts another one. */
export class LambdaHostEndedError extends Error {
  override readonly name = "LambdaHostEndedError";
}

export interface InvocationStats {
  invocations: number;
  errors: number;
}

export interface Lambda {
  /** Invocations and failures by function name. */
  readonly stats: Readonly<Record<string, Readonly<InvocationStats>>>;
  /**
   * Invokes a function of serverless.yml and waits for what it returns.
   * @throws {LambdaFunctionError} or {LambdaHostEndedError}
   */
  invoke(functionName: string, event: unknown): Promise<unknown>;
  arnOf(functionName: string): string;
  /** Ends the process; invocations that run are rejected. Repeatable. */
  stop(): Promise<void>;
}

export interface LambdaOptions {
  readonly file: ServerlessFile;
  /** Local values of the references in the functions' environments. */
  readonly references: References;
  /** The environment of the process; it wins over what serverless.yml says, so that a run can be tuned. */
  readonly env: Readonly<Record<string, string>>;
  readonly logger: Logger;
}

/** How much longer than its timeout a function may block its process before that is killed. */
const BLOCKED_GRACE_MS = 2_000;

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly functionName: string;
  readonly timer: NodeJS.Timeout;
}

/** Starts the process that the functions of serverless.yml run in. */
export async function startLambda(options: LambdaOptions): Promise<Lambda> {
  const { file, logger } = options;
  const definitions = new Map(file.functions.map((definition) => [definition.name, definition]));
  const stats: Record<string, InvocationStats> = {};
  for (const { name } of file.functions) stats[name] = { invocations: 0, errors: 0 };
  const pending = new Map<string, Pending>();
  const input: HostInput = {
    projectRoot: file.projectRoot,
    region: file.region,
    functions: file.functions.map(({ name, handler, timeoutMs, memoryMb }) => ({ name, handler, timeoutMs, memoryMb })),
  };
  const env = { ...commonEnvironment(file.functions, options.references), ...options.env };
  let stopped = false;
  let host: Promise<StartedChild> | undefined;

  const startHost = async (): Promise<StartedChild> => {
    const child = await startChild({
      name: "functions",
      module: new URL("./lambda-host.ts", import.meta.url),
      input,
      env,
      logger,
    });
    child.process.on("message", (reply: InvokeReply) => settle(reply));
    void child.ended.then(() => {
      host = undefined;
      if (!stopped) logger.error({ pid: child.pid }, "the process of the functions ended");
      for (const [id, { functionName }] of pending) {
        settle({ id, error: new LambdaHostEndedError(`${functionName}: the process of the functions ended`) });
      }
    });
    return child;
  };

  const settle = (reply: { id: string; result?: unknown; error?: FunctionError | Error }): void => {
    const entry = pending.get(reply.id);
    if (entry === undefined) return;
    pending.delete(reply.id);
    clearTimeout(entry.timer);
    const { error } = reply;
    if (error === undefined) {
      entry.resolve(reply.result);
      return;
    }
    const counts = stats[entry.functionName];
    if (counts !== undefined) counts.errors++;
    entry.reject(error instanceof Error ? error : new LambdaFunctionError(entry.functionName, error));
  };

  host = startHost();
  await host;

  return {
    stats,
    arnOf: (functionName) => functionArn(file.region, functionName),
    invoke: async (functionName, event) => {
      const definition = definitions.get(functionName);
      const counts = stats[functionName];
      if (definition === undefined || counts === undefined) {
        throw new Error(`serverless.yml has no function ${functionName}`);
      }
      if (stopped) throw new LambdaHostEndedError(`${functionName}: the functions are stopped`);
      host ??= startHost();
      const child = await host;
      counts.invocations++;
      return await new Promise<unknown>((resolve, reject) => {
        const id = randomUUID();
        const timer = setTimeout(() => {
          logger.error({ functionName, pid: child.pid }, "a function blocks its process, which is killed");
          child.process.kill("SIGKILL");
        }, definition.timeoutMs + BLOCKED_GRACE_MS);
        pending.set(id, { resolve, reject, functionName, timer });
        const request: InvokeRequest = { id, functionName, event };
        child.process.send(request, (error) => {
          if (error !== null) settle({ id, error: new LambdaHostEndedError(`${functionName}: ${error.message}`) });
        });
      });
    },
    stop: async () => {
      stopped = true;
      const child = await host;
      await child?.stop();
    },
  };
}

/** All functions share one process, so no two of them may give a variable different values. */
function commonEnvironment(functions: readonly FunctionDefinition[], references: References): Record<string, string> {
  const common: Record<string, string> = {};
  for (const { name, environment } of functions) {
    for (const [variable, value] of Object.entries(resolvedEnvironment(environment, references))) {
      if ((common[variable] ?? value) !== value) {
        throw new Error(`serverless.yml: functions.${name}.environment.${variable}: differs from another function's`);
      }
      common[variable] = value;
    }
  }
  return common;
}
