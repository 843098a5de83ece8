/** A process that starts the stack, prints what belongs to it as one line of JSON, and waits to be killed. */
import { startStack } from "../../../local/stack/stack.ts";
import { silentLogger } from "../../../shared/logger.ts";

const pids: number[] = [];
let folder = "";
const stack = await startStack({
  projectRoot: process.argv[2] ?? ".",
  env: process.env,
  logger: {
    ...silentLogger,
    debug: (fields: { pid?: number; ready?: { serverPid?: number; folder?: string } }) => {
      if (fields.pid !== undefined) pids.push(fields.pid);
      if (fields.ready?.serverPid !== undefined) pids.push(fields.ready.serverPid);
      folder = fields.ready?.folder ?? folder;
    },
  },
});
console.log(JSON.stringify({ pids, folder, endpoint: stack.dynamodbEndpoint }));
