import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { childInput, endWithParent, report } from "./child-side.ts";
import { indexStreamRecords } from "./stream-record-index.ts";

/**
 * Child process: owns one dynoxide server and its database folder, and takes both away when the parent goes. The binary
 * itself would outlive a killed parent.
 */

const POLL_MS = 20;
const START_TIMEOUT_MS = 15_000;
const PORT_ATTEMPTS = 3;
/** RAM-backed on Linux: the store lives as long as one run, so nothing is gained by waiting for a disk. */
const RAM_FOLDER = "/dev/shm";

interface Server {
  readonly process: ChildProcess;
  readonly endpoint: string;
  /** How, and its last words. */
  readonly ended: Promise<{ readonly how: string; readonly said: string }>;
}

const { binary } = childInput() as { binary: string };
const folder = await mkdtemp(path.join(existsSync(RAM_FOLDER) ? RAM_FOLDER : tmpdir(), "ws-fleet-dynamodb-"));
const databasePath = path.join(folder, "store.sqlite");
let server: Server | undefined;

endWithParent(async () => {
  if (server !== undefined) {
    server.process.kill("SIGTERM");
    const timer = setTimeout(() => server?.process.kill("SIGKILL"), 2_000);
    await server.ended;
    clearTimeout(timer);
  }
  await rm(folder, { recursive: true, force: true });
});

try {
  server = await startServer();
  void server.ended.then(({ how, said }) => {
    // Without a channel the end was asked for.
    if (!process.connected) return;
    report({ ending: how });
    console.error(`dynoxide ended by itself: ${how} ${said}`);
    process.disconnect();
  });
  report({
    ready: {
      endpoint: server.endpoint,
      serverPid: server.process.pid,
      folder,
      indexProblem: indexStreamRecords(databasePath),
    },
  });
} catch (error) {
  report({ failed: error instanceof Error ? error.message : String(error) });
}

async function startServer(): Promise<Server> {
  let last = "";
  // The server cannot choose a port by itself, and a free one may be taken between asking and binding.
  for (let attempt = 0; attempt < PORT_ATTEMPTS; attempt++) {
    const started = spawnServer(await freePort());
    server = started;
    const problem = await waitUntilServing(started);
    if (problem === undefined) return started;
    last = problem;
  }
  throw new Error(last);
}

function spawnServer(port: number): Server {
  const child = spawn(binary, ["serve", "--host", "127.0.0.1", "--port", String(port), "--db-path", databasePath], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let errorText = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errorText = (errorText + chunk.toString()).slice(-2_000);
  });
  const ended = new Promise<{ how: string; said: string }>((resolve) => {
    child.once("error", (error) => resolve({ how: error.message, said: "" }));
    child.once("exit", (code, signal) =>
      resolve({ how: code === null ? `signal ${signal}` : `exit code ${code}`, said: errorText.trim() }),
    );
  });
  return { process: child, endpoint: `http://127.0.0.1:${port}`, ended };
}

/** Resolves with undefined once a real request is answered, or with why that did not happen. */
async function waitUntilServing(candidate: Server): Promise<string | undefined> {
  const signal = AbortSignal.timeout(START_TIMEOUT_MS);
  let ended: string | undefined;
  void candidate.ended.then(({ how, said }) => (ended = `${how} ${said}`));
  while (!signal.aborted) {
    if (await answers(candidate.endpoint, signal)) return undefined;
    if (ended !== undefined) return `dynoxide ended while starting: ${ended}`;
    await delay(POLL_MS);
  }
  candidate.process.kill("SIGKILL");
  return `dynoxide did not answer within ${START_TIMEOUT_MS} ms`;
}

/** A request without credentials is refused, and a refusal in DynamoDB's own format is an answer. */
async function answers(endpoint: string, signal: AbortSignal): Promise<boolean> {
  try {
    const response = await fetch(endpoint, {
      method: "POST",
      headers: { "content-type": "application/x-amz-json-1.0", "x-amz-target": "DynamoDB_20120810.ListTables" },
      body: "{}",
      signal,
    });
    return (await response.text()).includes("__type");
  } catch {
    return false;
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => {
        if (address !== null && typeof address === "object") resolve(address.port);
        else reject(new Error("no free port on 127.0.0.1"));
      });
    });
  });
}
