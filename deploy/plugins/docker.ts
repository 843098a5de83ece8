import { spawn } from "node:child_process";

/** The Docker command line, as far as an image is built and pushed with it. */
export interface Docker {
  /** Why nothing can be built here, or undefined. */
  problem(): Promise<string | undefined>;
  /** Builds the folder's Dockerfile for `platform`. */
  build(folder: string, platform: string, image: string): Promise<void>;
  login(registry: string, user: string, password: string): Promise<void>;
  push(image: string): Promise<void>;
  logout(registry: string): Promise<void>;
}

export function dockerCommand(env: NodeJS.ProcessEnv): Docker {
  const run = (args: readonly string[], input?: string) => runDocker(args, env, input);
  return {
    async problem() {
      try {
        await run(["version", "--format", "{{.Server.Version}}"]);
        // The build stage runs on this machine's own platform, which only BuildKit can do beside another target.
        await run(["buildx", "version"]);
        return undefined;
      } catch (error) {
        return error instanceof Error ? error.message : String(error);
      }
    },
    build: (folder, platform, image) =>
      run(["buildx", "build", "--platform", platform, "--provenance=false", "--load", "--tag", image, folder]),
    login: (registry, user, password) => run(["login", "--username", user, "--password-stdin", registry], password),
    push: (image) => run(["push", image]),
    logout: (registry) => run(["logout", registry]),
  };
}

async function runDocker(args: readonly string[], env: NodeJS.ProcessEnv, input = ""): Promise<void> {
  const child = spawn("docker", args, { env, stdio: ["pipe", "ignore", "pipe"] });
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint = (complaint + text).slice(-4000);
  });
  // A command that ends without reading its input is judged by its exit code.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", (error) => reject(new Error(`docker cannot be run: ${error.message}`)));
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`docker ${args[0] ?? ""} ended with ${code ?? "a signal"}: ${complaint.trim()}`);
}
