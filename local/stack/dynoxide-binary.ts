import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

/**
 * The dynoxide executable: the optional npm package for this platform, else the first one on PATH.
 * @throws {Error} that says what to do when there is none.
 */
export function findDynoxide(env: Readonly<Record<string, string | undefined>>): string {
  const name = process.platform === "win32" ? "dynoxide.exe" : "dynoxide";
  const packageName = `@dynoxide/${process.platform}-${process.arch}`;
  const candidates = (env["PATH"] ?? "")
    .split(path.delimiter)
    .filter((folder) => folder !== "")
    .map((folder) => path.join(folder, name));
  try {
    const manifest = createRequire(import.meta.url).resolve(`${packageName}/package.json`);
    candidates.unshift(path.join(path.dirname(manifest), name));
  } catch {
    // An optional dependency: absent where the package does not exist for the platform.
  }
  const found = candidates.find(isExecutable);
  if (found !== undefined) return found;
  throw new Error(
    `no local DynamoDB: neither the npm package ${packageName} nor a "dynoxide" on PATH was found. ` +
      "Install one of them, or set AWS_ENDPOINT_URL_DYNAMODB to an endpoint with DynamoDB and DynamoDB Streams.",
  );
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
