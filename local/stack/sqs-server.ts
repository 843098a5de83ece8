import { buildApp } from "fauxqs";
import { childInput, endWithParent, report } from "./child-side.ts";
import { giveBackDeadPolls } from "./dead-polls.ts";

/** Child process: the embedded SQS on a free port of 127.0.0.1. */

const { region } = childInput() as { region: string };
const app = buildApp({ logger: false, defaultRegion: region });
giveBackDeadPolls(app);

endWithParent(async () => {
  // Open long polls would hold a graceful close for as long as they wait.
  app.server.closeAllConnections();
  await app.close();
});

try {
  report({ ready: { endpoint: await app.listen({ host: "127.0.0.1", port: 0 }) } });
} catch (error) {
  report({ failed: error instanceof Error ? error.message : String(error) });
}
