import { CloudFormationClient, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import { DescribeTableCommand, DynamoDBClient, ResourceNotFoundException } from "@aws-sdk/client-dynamodb";
import type { Plugin, Serverless, Writers } from "./osls.ts";

/**
 * Tells of tables that outlive their stack. Removing a stage names those that stay; deploying a stage anew beside them
 * would fail halfway, since their names are taken, and so is refused before anything is created.
 */
export default class KeptTables implements Plugin {
  readonly hooks;
  readonly #serverless: Serverless;

  constructor(serverless: Serverless, _options: object, { log }: Writers) {
    this.#serverless = serverless;
    this.hooks = {
      "before:aws:deploy:deploy:createStack": async () => {
        if (await this.#stackExists()) return;
        const kept = await this.#tables();
        if (kept.length === 0) return;
        throw new serverless.classes.Error(
          `tables of a former deployment are still there: ${kept.join(", ")}\n` +
            "Nothing was deployed. Choose another stage, or see docs/operations.md (Remove) on how to be rid of them.",
          "WS_FLEET_KEPT_TABLES",
        );
      },
      "after:remove:remove": async () => {
        const kept = await this.#tables();
        if (kept.length > 0) log.notice(`These tables stay, with their items and their costs: ${kept.join(", ")}`);
      },
    };
  }

  async #stackExists(): Promise<boolean> {
    const provider = this.#serverless.getProvider("aws");
    const client = new CloudFormationClient(await provider.getAwsSdkV3Config());
    try {
      await client.send(new DescribeStacksCommand({ StackName: provider.naming.getStackName() }));
      return true;
    } catch (error) {
      if (error instanceof Error && /does not exist/.test(error.message)) return false;
      throw error;
    } finally {
      client.destroy();
    }
  }

  /** Names of this stage's tables that exist. */
  async #tables(): Promise<string[]> {
    const provider = this.#serverless.getProvider("aws");
    const client = new DynamoDBClient(await provider.getAwsSdkV3Config());
    try {
      const names = tableNames(this.#serverless.service.service, provider.getStage());
      const found = await Promise.all(names.map(async (name) => ((await exists(client, name)) ? [name] : [])));
      return found.flat();
    } finally {
      client.destroy();
    }
  }
}

/** As deploy/resources/tables.yml names them. */
export function tableNames(service: string, stage: string): string[] {
  return [`${service}-${stage}-connections`, `${service}-${stage}-messages`];
}

async function exists(client: DynamoDBClient, TableName: string): Promise<boolean> {
  try {
    await client.send(new DescribeTableCommand({ TableName }));
    return true;
  } catch (error) {
    if (error instanceof ResourceNotFoundException) return false;
    throw error;
  }
}
