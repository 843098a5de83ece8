import { rm } from "node:fs/promises";
import type { Logger } from "../../shared/logger.ts";
import { sendSignal } from "../ecs/processes.ts";
import { startChild } from "./child.ts";
import { findDynoxide } from "./dynoxide-binary.ts";
import { embeddedServer, externalServer, type LocalServer } from "./server.ts";

export interface ServerOptions {
  /** Of the runner: an AWS_ENDPOINT_URL_* in it replaces the embedded server. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly childEnv: Record<string, string>;
  readonly logger: Logger;
  /** Told when the embedded server ends and nobody asked for it. */
  readonly onLost?: (what: string) => void;
}

/** What the wrapper process around dynoxide reports. */
interface DynoxideReady {
  readonly endpoint: string;
  readonly indexProblem: string | undefined;
  readonly serverPid: number;
  readonly folder: string;
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
  const { endpoint, indexProblem, serverPid, folder } = child.ready as DynoxideReady;
  if (indexProblem !== undefined) {
    logger.warn({ problem: indexProblem }, "stream records have no index: writes get slower with their number");
  }
  // Where the wrapper was killed, nobody else does its duty.
  void child.ended.then(async () => {
    if (sendSignal(serverPid, "SIGKILL")) await rm(folder, { recursive: true, force: true });
  });
  return embeddedServer("DynamoDB", endpoint, child, options);
}
