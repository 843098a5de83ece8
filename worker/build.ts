import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Bundles the two programs of a task, as they go into the container: one file each, no node_modules beside them. */
export async function buildWorker(outdir: string): Promise<void> {
  await build({
    entryPoints: {
      worker: fileURLToPath(new URL("./main.ts", import.meta.url)),
      supervisor: fileURLToPath(new URL("./supervisor.ts", import.meta.url)),
    },
    outdir,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    target: "node24",
    format: "esm",
    sourcemap: true,
    minifySyntax: true,
    legalComments: "none",
    logLevel: "warning",
    // pino and parts of the SDK are CommonJS and call require for Node's own modules.
    banner: {
      js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);',
    },
  });
}

if (import.meta.main) await buildWorker(process.argv[2] ?? "dist");
