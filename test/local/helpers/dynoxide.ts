import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { findDynoxide } from "../../../local/stack/dynoxide-binary.ts";
import { until } from "./feed-client.ts";

/** A local DynamoDB in memory, for tests that need its real pages and types but none of the other local services. */
export interface LocalDynamo {
  readonly dynamodb: DynamoDBClient;
  stop(): Promise<void>;
}

export async function startDynamo(): Promise<LocalDynamo> {
  const port = await freePort();
  const args = ["serve", "--host", "127.0.0.1", "--port", String(port)];
  const server = spawn(findDynoxide(process.env), args, { stdio: "ignore" });
  const exited = once(server, "exit");
  const dynamodb = new DynamoDBClient({
    endpoint: `http://127.0.0.1:${port}`,
    region: "local",
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
    maxAttempts: 1,
  });
  const stop = async (): Promise<void> => {
    dynamodb.destroy();
    server.kill("SIGKILL");
    await exited;
  };
  try {
    await until("DynamoDB answers", async () => {
      if (server.exitCode !== null) throw new Error(`dynoxide ended with code ${server.exitCode}`);
      return await dynamodb.send(new ListTablesCommand()).then(
        () => true,
        () => false,
      );
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { dynamodb, stop };
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
