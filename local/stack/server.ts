import type { Logger } from "../../shared/logger.ts";
import type { StartedChild } from "./child.ts";

/** A service endpoint that a local run uses. */
export interface LocalServer {
  /** Without a trailing slash. */
  readonly endpoint: string;
  /** false: somebody else's, named by AWS_ENDPOINT_URL_*; it is neither started nor stopped here. */
  readonly embedded: boolean;
  /** The variable that named it, for what is not embedded. */
  readonly variable?: string;
  stop(): Promise<void>;
}

/** An endpoint that the user named cannot serve. The message names the variable, the value and the rule. */
export class EndpointError extends Error {
  override readonly name = "EndpointError";
}

/** The endpoint that the user named, or undefined when the embedded server is wanted. */
export function externalServer(
  variable: string,
  env: Readonly<Record<string, string | undefined>>,
): LocalServer | undefined {
  const value = env[variable];
  if (value === undefined || value === "") return undefined;
  const protocol = URL.parse(value)?.protocol;
  if (protocol !== "http:" && protocol !== "https:") {
    throw new EndpointError(`${variable} must be a URL of http or https, got ${JSON.stringify(value)}`);
  }
  return { endpoint: value.replace(/\/+$/, ""), embedded: false, variable, stop: () => Promise.resolve() };
}

/**
 * Runs the first requests to a server.
 *
 * @throws {EndpointError} when they fail on an endpoint that the user named: then it is the wrong one, or out of reach.
 */
export async function firstUse<T>(server: LocalServer, service: string, use: () => Promise<T>): Promise<T> {
  try {
    return await use();
  } catch (error) {
    if (server.variable === undefined) throw error;
    // The SDK's advice on reading its raw answer, and what other servers wrote in theirs, helps nobody here.
    const reason = error instanceof SyntaxError ? "its answer is not the service's" : String(error).split("\n")[0];
    throw new EndpointError(`${server.variable}=${server.endpoint}: must be an endpoint of ${service}: ${reason}`, {
      cause: error,
    });
  }
}

/** An embedded server in its own process. Its unasked end is an error for people to see: nothing can replace its data. */
export function embeddedServer(
  name: string,
  endpoint: string,
  child: StartedChild,
  { logger, onLost }: { readonly logger: Logger; readonly onLost?: (what: string) => void },
): LocalServer {
  let stopping = false;
  void child.ended.then((how) => {
    if (stopping) return;
    logger.error({ server: name, endpoint, how }, "embedded server ended unexpectedly");
    onLost?.(`the embedded ${name} ended (${how})`);
  });
  return {
    endpoint,
    embedded: true,
    stop: async () => {
      stopping = true;
      await child.stop();
    },
  };
}

export function isLoopback(endpoint: string): boolean {
  const { hostname } = new URL(endpoint);
  return hostname === "localhost" || hostname === "[::1]" || /^127\./.test(hostname);
}
