import { DescribeTaskDefinitionCommand, type ECSClient } from "@aws-sdk/client-ecs";
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { buildWorker } from "../../worker/build.ts";

export interface Task {
  readonly id: string;
  readonly arn: string;
  readonly output: () => string;
  /** The whole task at once, as a lost host would. @returns the exit code that ECS would see. */
  kill(): Promise<number>;
  /** SIGTERM, as ECS sends it. @returns the exit code. */
  terminate(): Promise<number | null>;
}

/** Runs tasks of the deployed task definition as processes, since the emulator has no containers to run them in. */
export interface TaskRunner {
  start(): Task;
  readonly stop: () => Promise<void>;
}

const ACCOUNT = "000000000000";

export async function startTaskRunner(
  ecs: ECSClient,
  taskDefinition: string,
  clusterName: string,
  env: Readonly<Record<string, string>>,
): Promise<TaskRunner> {
  const described = await ecs.send(new DescribeTaskDefinitionCommand({ taskDefinition }));
  const [container] = described.taskDefinition?.containerDefinitions ?? [];
  assert.equal(container?.name, "worker");
  const deployed = Object.fromEntries((container.environment ?? []).map(({ name = "", value = "" }) => [name, value]));
  const folder = mkdtempSync(path.join(tmpdir(), "ws-fleet-deployed-"));
  await buildWorker(folder);

  const arnOf = (id: string): string => `arn:aws:ecs:us-east-1:${ACCOUNT}:task/${clusterName}/${id}`;
  const metadata = createServer((request, response) => {
    const id = request.url?.split("/")[1] ?? "";
    response.end(JSON.stringify({ TaskARN: arnOf(id), Cluster: clusterName }));
  }).listen(0, "127.0.0.1");
  await once(metadata, "listening");
  const { port } = metadata.address() as AddressInfo;

  const children: ChildProcess[] = [];
  const start = (): Task => {
    const id = randomBytes(16).toString("hex");
    const child = spawn(process.execPath, [path.join(folder, "supervisor.mjs")], {
      env: {
        PATH: process.env["PATH"],
        ...deployed,
        ...env,
        // Several tasks share this machine's loopback, where each container has its own.
        WS_FLEET_HEALTH_PORT: "0",
        ECS_CONTAINER_METADATA_URI_V4: `http://127.0.0.1:${port}/${id}`,
      },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    children.push(child);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => (output += text));
    }
    const ended = once(child, "exit") as Promise<[number | null]>;
    return {
      id,
      arn: arnOf(id),
      output: () => output,
      kill: async () => {
        killGroup(child);
        await ended;
        return 137;
      },
      terminate: async () => {
        child.kill("SIGTERM");
        return (await ended)[0];
      },
    };
  };
  const stop = async (): Promise<void> => {
    for (const child of children) {
      if (child.exitCode === null && child.signalCode === null) killGroup(child);
    }
    metadata.closeAllConnections();
    metadata.close();
    await once(metadata, "close");
    rmSync(folder, { recursive: true, force: true });
  };
  return { start, stop };
}

function killGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, "SIGKILL");
}
