import type { Logger } from "../../shared/logger.ts";
import { startChild } from "./child.ts";
import { findDynoxide } from "./dynoxide-binary.ts";
import { embeddedServer, externalServer, type LocalServer } from "./server.ts";

export interface ServerOptions {
  /** Of the runner: an AWS_ENDPOINT_URL_* in it replaces the embedded server. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly childEnv: Record<string, string>;
  readonly logger: Logger;
}

/** What the wrapper process around dynoxide reports. */
interface DynoxideReady {
  readonly endpoint: string;
  readonly indexProblem: string | undefined;
}

/**
 * DynamoDB with streams: the endpoint in AWS_ENDPOINT_URL_DYNAMODB, else an embedded dynoxide on a free port of 127.0.0.1
 * with a fresh database that is removed at the end.
 * @throws {Error} that says what to do when there is no server to start.
 */
export async function startDynamoDb(options: ServerOptions): Promise<LocalServer> {
  const { env, childEnv, logger } = options;
  const external = externalServer("AWS_ENDPOINT_URL_DYNAMODB", env);
  if (external !== undefined) return external;
  const child = await startChild({
    name: "dynamodb",
    module: new URL("./dynoxide-host.ts", import.meta.url),
    input: { binary: findDynoxide(env) },
    env: childEnv,
    logger,
  });
  const { endpoint, indexProblem } = child.ready as DynoxideReady;
  if (indexProblem !== undefined) {
    logger.warn({ problem: indexProblem }, "stream records have no index: writes get slower with their number");
  }
  return embeddedServer("dynamodb", endpoint, child, logger);
}
