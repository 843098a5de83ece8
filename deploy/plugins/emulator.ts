import { setTimeout as delay } from "node:timers/promises";
import { CloudFormationClient, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import type { Plugin, Serverless } from "./osls.ts";

/** The framework's deploy and remove plugins, whose two methods an emulator cannot serve. */
interface StackUser {
  validateTemplate?: () => Promise<void>;
  monitorStack?: (action: string, stack: unknown) => Promise<string | undefined>;
}

const POLL_MS = 250;
const DONE = new Set(["CREATE_COMPLETE", "UPDATE_COMPLETE", "DELETE_COMPLETE"]);

/**
 * Makes deployments against an emulator possible; without AWS_ENDPOINT_URL it does nothing. Emulators refuse to validate
 * a template by its URL, and give stack events of one millisecond in any order, so that following them may never end:
 * the stack's own status is asked for instead.
 */
export default class Emulator implements Plugin {
  readonly hooks;

  constructor(serverless: Serverless) {
    const emulated = (process.env["AWS_ENDPOINT_URL"] ?? "") !== "";
    this.hooks = emulated ? { initialize: () => follow(serverless) } : {};
  }
}

function follow(serverless: Serverless): void {
  for (const plugin of serverless.pluginManager.plugins as StackUser[]) {
    if (plugin.validateTemplate !== undefined && plugin.monitorStack !== undefined) {
      plugin.validateTemplate = () => Promise.resolve();
    }
    if (plugin.monitorStack !== undefined) {
      plugin.monitorStack = (_action, stack) =>
        stack === "alreadyCreated" ? Promise.resolve(undefined) : stackDone(serverless);
    }
  }
}

/** @throws with the status and its reason when the stack ended in any other than a completed state. */
async function stackDone(serverless: Serverless): Promise<string> {
  const provider = serverless.getProvider("aws");
  const client = new CloudFormationClient(await provider.getAwsSdkV3Config());
  const StackName = provider.naming.getStackName();
  for (;;) {
    const stack = await client.send(new DescribeStacksCommand({ StackName })).then(
      ({ Stacks }) => Stacks?.[0],
      (error: unknown) => {
        if (error instanceof Error && /does not exist/.test(error.message)) return undefined;
        throw error;
      },
    );
    const status: string = stack?.StackStatus ?? "DELETE_COMPLETE";
    if (DONE.has(status)) return status;
    if (!status.endsWith("_IN_PROGRESS"))
      throw new Error(`stack ${StackName}: ${status} ${stack?.StackStatusReason ?? ""}`);
    await delay(POLL_MS);
  }
}
