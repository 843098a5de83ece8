import { build } from "esbuild";
import { PROJECT_ROOT } from "./package.ts";

/** The SDK commands that a program can send: those constructed in what its bundle keeps of the project's files. */
export async function usedCommands(entry: string): Promise<Set<string>> {
  const { outputFiles } = await build({
    absWorkingDir: PROJECT_ROOT,
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    target: "node24",
    packages: "external",
    treeShaking: true,
    logLevel: "silent",
  });
  const code = outputFiles.map(({ text }) => text).join("\n");
  // Bundled files that import one name twice get it with a number behind.
  return new Set([...code.matchAll(/new (\w+?)Command\d*\(/g)].map((match) => match[1] ?? ""));
}
