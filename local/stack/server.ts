import type { Logger } from "../../shared/logger.ts";
import type { StartedChild } from "./child.ts";

/** A service endpoint that a local run uses. */
export interface LocalServer {
  /** Without a trailing slash. */
  readonly endpoint: string;
  /** false: somebody else's, named by AWS_ENDPOINT_URL_*; it is neither started nor stopped here. */
  readonly embedded: boolean;
  stop(): Promise<void>;
}

/** The endpoint that the user named, or undefined when the embedded server is wanted. */
export function externalServer(
  variable: string,
  env: Readonly<Record<string, string | undefined>>,
): LocalServer | undefined {
  const value = env[variable];
  if (value === undefined || value === "") return undefined;
  if (!URL.canParse(value)) throw new Error(`${variable} must be a URL, got ${JSON.stringify(value)}`);
  return { endpoint: value.replace(/\/+$/, ""), embedded: false, stop: () => Promise.resolve() };
}

/** An embedded server in its own process. Its unasked end is an error for people to see: nothing can replace its data. */
export function embeddedServer(name: string, endpoint: string, child: StartedChild, logger: Logger): LocalServer {
  let stopping = false;
  void child.ended.then(() => {
    if (!stopping) logger.error({ server: name, endpoint }, "embedded server ended unexpectedly");
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
