import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { until } from "../local/stack/until.ts";

/** The version whose behaviour the deployment test was written against. */
const MINISTACK = "ministack==1.5.33";

export interface Emulator {
  readonly endpoint: string;
  /** For clients, the framework and workers alike. */
  readonly env: Readonly<Record<string, string>>;
  readonly logFile: string;
  readonly stop: () => Promise<void>;
}

/** Installs ministack into a virtual environment of its own and starts it on a free port; `stop` leaves neither. */
export async function startEmulator(): Promise<Emulator> {
  const folder = mkdtempSync(path.join(tmpdir(), "ws-fleet-emulator-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    run("python3", ["-m", "venv", path.join(folder, "venv")]);
    run(path.join(folder, "venv/bin/pip"), ["install", "--quiet", "--disable-pip-version-check", MINISTACK]);
    return await start(folder, remove);
  } catch (error) {
    remove();
    throw error;
  }
}

async function start(folder: string, remove: () => void): Promise<Emulator> {
  const port = await freePort();
  // By number: bucket host names below `localhost` would not resolve.
  const endpoint = `http://127.0.0.1:${port}`;
  const scratch = path.join(folder, "tmp");
  mkdirSync(scratch);
  const logFile = path.join(folder, "log");
  const server = spawn(path.join(folder, "venv/bin/ministack"), [], {
    cwd: folder,
    env: {
      // Functions run on the first node there, which under npm is the project's own.
      PATH: `${path.dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
      HOME: folder,
      TMPDIR: scratch,
      MINISTACK_HOST: "127.0.0.1",
      BIND_HOST: "127.0.0.1",
      GATEWAY_PORT: String(port),
      IOT_MTLS_ENABLED: "0",
      SFTP_ENABLED: "0",
    },
    stdio: ["ignore", "pipe", "pipe"],
    // A group of its own: the functions' processes are its children and end with it.
    detached: true,
  });
  const log = createWriteStream(logFile);
  server.stdout.pipe(log);
  server.stderr.pipe(log);
  const ended = once(server, "exit");
  const stop = async (): Promise<void> => {
    if (server.exitCode === null && server.pid !== undefined) {
      process.kill(-server.pid, "SIGKILL");
      await ended;
    }
    remove();
  };
  try {
    await until("the emulator answers", async () => {
      if (server.exitCode !== null) throw new Error(`ministack ended with ${server.exitCode}`);
      return await fetch(`${endpoint}/_ministack/health`).then(
        (response) => response.ok,
        () => false,
      );
    });
  } catch (error) {
    await stop();
    throw error;
  }
  const env = {
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
  };
  return { endpoint, env, logFile, stop };
}

/** @throws with what the command said. */
function run(command: string, args: readonly string[]): void {
  const { error, status, stderr } = spawnSync(command, args, { encoding: "utf8", stdio: ["ignore", "ignore", "pipe"] });
  if (error !== undefined) throw new Error(`${command} cannot be run: ${error.message}`);
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status ?? "a signal"}: ${stderr}`);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
