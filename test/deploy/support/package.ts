import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Template } from "../../../deploy/plugins/osls.ts";

export const PROJECT_ROOT = path.join(import.meta.dirname, "../../..");
export const STAGE = "some";

export interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Runs the Serverless Framework in the project, by default without credentials and without any endpoint to go to. */
export async function serverless(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const bin = path.join(PROJECT_ROOT, "node_modules/serverless/bin/serverless.js");
  // The framework leaves a folder for each function's bundle behind.
  const temporary = mkdtempSync(path.join(tmpdir(), "ws-fleet-serverless-"));
  try {
    return await run(bin, args, { TMPDIR: temporary, ...env });
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

async function run(bin: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> {
  const child = spawn(process.execPath, [bin, ...args], {
    cwd: PROJECT_ROOT,
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      AWS_REGION: "us-east-1",
      AWS_EC2_METADATA_DISABLED: "true",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return { code, output };
}

export interface Packaged {
  /** Holds the package, for a later `deploy --package`. */
  readonly folder: string;
  readonly template: Template;
  readonly remove: () => void;
}

/** Packages the service, offline. @throws with the framework's own words when it refuses. */
export async function packageService(params: readonly string[] = [], stage = STAGE): Promise<Packaged> {
  const folder = mkdtempSync(path.join(tmpdir(), "ws-fleet-package-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  const args = ["package", "--stage", stage, "--package", folder, ...params.map((param) => `--param=${param}`)];
  const { code, output } = await serverless(args);
  if (code !== 0) {
    remove();
    throw new Error(output);
  }
  const file = path.join(folder, "cloudformation-template-update-stack.json");
  return { folder, template: JSON.parse(readFileSync(file, "utf8")) as Template, remove };
}
