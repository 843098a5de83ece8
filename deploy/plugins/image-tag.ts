import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import path from "node:path";

/** All that an image is made from. `.dockerignore` lets the same into the build; a test compares the two. */
export const IMAGE_INPUTS = [
  "Dockerfile",
  ".dockerignore",
  "package.json",
  "package-lock.json",
  "shared/**/*.ts",
  "worker/**/*.ts",
];

/** Paths relative to the project's root, with forward slashes, in a fixed order. */
export function imageInputs(projectRoot: string): string[] {
  return globSync(IMAGE_INPUTS, { cwd: projectRoot })
    .map((file) => file.split(path.sep).join("/"))
    .sort();
}

/** The same for the same content: what did not change is neither built nor deployed again. */
export function imageTag(projectRoot: string): string {
  const hash = createHash("sha256");
  for (const file of imageInputs(projectRoot)) {
    const content = readFileSync(path.join(projectRoot, file));
    hash.update(`${file}\0${content.length}\0`).update(content);
  }
  return `sha-${hash.digest("hex").slice(0, 24)}`;
}
