import { startChild } from "./child.ts";
import type { ServerOptions } from "./dynamodb.ts";
import { embeddedServer, externalServer, type LocalServer } from "./server.ts";

/** SQS: the endpoint in AWS_ENDPOINT_URL_SQS, else an embedded server on a free port of 127.0.0.1. */
export async function startSqs(options: ServerOptions & { readonly region: string }): Promise<LocalServer> {
  const external = externalServer("AWS_ENDPOINT_URL_SQS", options.env);
  if (external !== undefined) return external;
  const child = await startChild({
    name: "sqs",
    module: new URL("./sqs-server.ts", import.meta.url),
    input: { region: options.region },
    env: options.childEnv,
    logger: options.logger,
  });
  const { endpoint } = child.ready as { endpoint: string };
  return embeddedServer("SQS", endpoint, child, options);
}
