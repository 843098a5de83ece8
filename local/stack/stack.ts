import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { SQSClient } from "@aws-sdk/client-sqs";
import type { Logger } from "../../shared/logger.ts";
import { readServerlessFile, type ServerlessFile } from "../serverless-file.ts";
import type { References } from "../serverless/intrinsics.ts";
import { basicEnv, userCredentials } from "./child-env.ts";
import { ensureQueues } from "./create-queues.ts";
import { ensureTable } from "./create-tables.ts";
import { startDynamoDb } from "./dynamodb.ts";
import { resolvedEnvironment } from "./resolved-environment.ts";
import { firstUse, isLoopback, type LocalServer } from "./server.ts";
import { startSqs } from "./sqs.ts";

export interface StackOptions {
  /** The folder that holds serverless.yml. */
  readonly projectRoot: string;
  /** Of the runner. AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL_SQS and AWS_REGION are looked at. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
  readonly stage?: string;
  /** Creates the queues and then takes their server away: every call to SQS is refused, as with a broken queue. */
  readonly withoutQueue?: boolean;
  /** Told when an embedded server ends and nobody asked for it: its data is gone, and with it the run. */
  readonly onLost?: (what: string) => void;
}

/** Tables and queues of serverless.yml, served on this machine (or by the endpoints that the user named). */
export interface Stack {
  readonly file: ServerlessFile;
  readonly dynamodbEndpoint: string;
  readonly sqsEndpoint: string;
  readonly region: string;
  /** Made up, for servers on the loopback interface; undefined when an endpoint elsewhere needs real ones. */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined;
  readonly connectionsTable: string;
  readonly messagesTable: string;
  readonly hintQueueUrl: string;
  readonly dlqUrl: string;
  readonly clusterName: string;
  readonly clusterArn: string;
  /** Local values of the references in serverless.yml. */
  readonly references: References;
  /** The whole environment for a process of the fleet: the basics, the endpoints, and what serverless.yml gives functions. */
  readonly env: Readonly<Record<string, string>>;
  /** Stops what was started; repeatable. */
  stop(): Promise<void>;
}

/** The account that local servers use in their ARNs. */
const LOCAL_ACCOUNT = "000000000000";
const LOCAL_REGION = "us-east-1";
const LOOPBACK_CREDENTIALS = { accessKeyId: "local", secretAccessKey: "local" };

/** @throws {Error} when a server does not start or serverless.yml lacks what the fleet needs; nothing is left running then. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { env, logger, onLost } = options;
  const region = env["AWS_REGION"] ?? LOCAL_REGION;
  const file = readServerlessFile({
    projectRoot: options.projectRoot,
    region,
    env,
    ...(options.stage !== undefined && { stage: options.stage }),
  });
  const childEnv = basicEnv(env);
  const lost = onLost === undefined ? {} : { onLost };
  const servers: LocalServer[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    const dynamodb = await startDynamoDb({ env, childEnv, logger, ...lost });
    servers.push(dynamodb);
    const sqs = await startSqs({ env, childEnv, logger, region, ...lost });
    servers.push(sqs);
    const stack = await assemble(options, file, region, dynamodb, sqs);
    if (options.withoutQueue === true) {
      if (!sqs.embedded) throw new Error("withoutQueue needs the embedded queue: unset AWS_ENDPOINT_URL_SQS");
      await sqs.stop();
    }
    return { ...stack, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function assemble(
  options: StackOptions,
  file: ServerlessFile,
  region: string,
  dynamodb: LocalServer,
  sqs: LocalServer,
): Promise<Omit<Stack, "stop">> {
  const credentials = isLoopback(dynamodb.endpoint) && isLoopback(sqs.endpoint) ? LOOPBACK_CREDENTIALS : undefined;
  const references = await createResources(file, region, dynamodb, sqs, credentials);
  const need = (key: string): string => {
    const value = references[key];
    if (value === undefined) throw new Error(`serverless.yml: resources has no ${key}, which a local run needs`);
    return value;
  };
  return {
    file,
    dynamodbEndpoint: dynamodb.endpoint,
    sqsEndpoint: sqs.endpoint,
    region,
    credentials,
    connectionsTable: need("ConnectionsTable"),
    messagesTable: need("MessagesTable"),
    hintQueueUrl: need("HintQueue"),
    dlqUrl: need("HintDeadLetterQueue"),
    clusterName: need("Cluster"),
    clusterArn: need("Cluster.Arn"),
    references,
    env: {
      ...basicEnv(options.env),
      AWS_REGION: region,
      AWS_ENDPOINT_URL_DYNAMODB: dynamodb.endpoint,
      AWS_ENDPOINT_URL_SQS: sqs.endpoint,
      ...(credentials === undefined
        ? userCredentials(options.env)
        : { AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey }),
      ...resolvedEnvironment(file.environment, references),
      // Functions have no use for it; the worker sends what it cannot read there.
      WS_FLEET_DLQ_URL: need("HintDeadLetterQueue"),
    },
  };
}

async function createResources(
  file: ServerlessFile,
  region: string,
  dynamodb: LocalServer,
  sqs: LocalServer,
  credentials: Stack["credentials"],
): Promise<References> {
  const references: Record<string, string> = {
    "AWS::Region": region,
    "AWS::AccountId": LOCAL_ACCOUNT,
    "AWS::Partition": "aws",
  };
  const shared = { region, ...(credentials && { credentials }) };
  const dynamodbClient = new DynamoDBClient({ ...shared, endpoint: dynamodb.endpoint });
  const sqsClient = new SQSClient({ ...shared, endpoint: sqs.endpoint });
  try {
    for (const definition of file.tables) {
      const table = await firstUse(dynamodb, "DynamoDB with streams", () => ensureTable(dynamodbClient, definition));
      references[definition.logicalId] = table.tableName;
      references[`${definition.logicalId}.Arn`] = table.tableArn;
      if (table.streamArn !== undefined) references[`${definition.logicalId}.StreamArn`] = table.streamArn;
    }
    const loopbackOrigin = isLoopback(sqs.endpoint) ? new URL(sqs.endpoint).origin : undefined;
    const queues = await firstUse(sqs, "SQS", () => ensureQueues(sqsClient, file.queues, loopbackOrigin));
    for (const [logicalId, queue] of queues) {
      references[logicalId] = queue.url;
      references[`${logicalId}.Arn`] = queue.arn;
    }
  } finally {
    dynamodbClient.destroy();
    sqsClient.destroy();
  }
  for (const { logicalId, clusterName } of file.clusters) {
    references[logicalId] = clusterName;
    references[`${logicalId}.Arn`] = `arn:aws:ecs:${region}:${LOCAL_ACCOUNT}:cluster/${clusterName}`;
  }
  return references;
}
