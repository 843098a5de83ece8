/**
 * A task for tests: the first process keeps a child and ends with it, or by SIGTERM with code 0, as a supervisor does. The
 * child writes a line every few milliseconds, so that it can be seen to run.
 */
import { fork } from "node:child_process";
import { appendFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const file = process.env["BEATS"] ?? "";
if (process.argv[2] === "worker") {
  setInterval(() => appendFileSync(file, "beat\n"), 5);
  process.on("disconnect", () => process.exit(4));
} else {
  const worker = fork(fileURLToPath(import.meta.url), ["worker"]);
  worker.on("exit", () => process.exit(7));
  process.on("SIGTERM", () => process.exit(0));
  console.log("the task's own words");
}
