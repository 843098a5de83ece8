/** A process that starts an agent with one task, tells their process ids, and waits to be killed. */
import { fileURLToPath } from "node:url";
import { startAgent } from "../../../local/ecs/agent.ts";
import { silentLogger } from "../../../shared/logger.ts";

const pids: number[] = [];
const agent = await startAgent({
  env: {},
  logger: {
    ...silentLogger,
    debug: (fields: { pid?: number }) => {
      if (fields.pid !== undefined) pids.push(fields.pid);
    },
  },
});
const [, , beats = "", logFile = ""] = process.argv;
const entry = fileURLToPath(new URL("./fixture-task.ts", import.meta.url));
const { pid } = await agent.launch({ taskId: "t1", entry, env: { BEATS: beats }, logFile });
console.log(JSON.stringify([...pids, pid]));
