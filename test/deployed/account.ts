import { CloudFormationClient, DescribeStacksCommand, ListStackResourcesCommand } from "@aws-sdk/client-cloudformation";
import { CloudWatchClient, ListMetricsCommand } from "@aws-sdk/client-cloudwatch";
import {
  CloudWatchLogsClient,
  DescribeLogGroupsCommand,
  FilterLogEventsCommand,
} from "@aws-sdk/client-cloudwatch-logs";
import { DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { DescribeRepositoriesCommand, ECRClient } from "@aws-sdk/client-ecr";
import {
  DescribeServicesCommand,
  ECSClient,
  ListServicesCommand,
  ListTaskDefinitionsCommand,
  type Service,
} from "@aws-sdk/client-ecs";
import { EventBridgeClient, ListRulesCommand } from "@aws-sdk/client-eventbridge";
import {
  GetFunctionConfigurationCommand,
  LambdaClient,
  ListEventSourceMappingsCommand,
  ListFunctionsCommand,
} from "@aws-sdk/client-lambda";
import { ListBucketsCommand, S3Client } from "@aws-sdk/client-s3";
import { ListQueuesCommand, SQSClient } from "@aws-sdk/client-sqs";
import type { Emulator } from "./emulator.ts";

/** What the deployment test asks of the emulated account. */
export class Account {
  readonly dynamoDb: DynamoDBClient;
  readonly ecs: ECSClient;
  readonly events: EventBridgeClient;
  readonly #cloudFormation: CloudFormationClient;
  readonly #cloudWatch: CloudWatchClient;
  readonly #ecr: ECRClient;
  readonly #lambda: LambdaClient;
  readonly #logs: CloudWatchLogsClient;
  readonly #s3: S3Client;
  readonly #sqs: SQSClient;

  constructor({ endpoint, env }: Emulator) {
    const credentials = { accessKeyId: "test", secretAccessKey: "test" };
    const config = { endpoint, region: env["AWS_REGION"] ?? "", credentials };
    this.dynamoDb = new DynamoDBClient(config);
    this.ecs = new ECSClient(config);
    this.events = new EventBridgeClient(config);
    this.#cloudFormation = new CloudFormationClient(config);
    this.#cloudWatch = new CloudWatchClient(config);
    this.#ecr = new ECRClient(config);
    this.#lambda = new LambdaClient(config);
    this.#logs = new CloudWatchLogsClient(config);
    this.#s3 = new S3Client(config);
    this.#sqs = new SQSClient(config);
  }

  /** Logical ids and the status of each. */
  async resources(stack: string): Promise<Map<string, string>> {
    const { StackResourceSummaries } = await this.#cloudFormation.send(
      new ListStackResourcesCommand({ StackName: stack }),
    );
    return new Map(StackResourceSummaries?.map((one) => [one.LogicalResourceId ?? "", one.ResourceStatus ?? ""]));
  }

  /** Undefined: there is no such stack (any more). */
  async stackStatus(stack: string): Promise<string | undefined> {
    try {
      const { Stacks } = await this.#cloudFormation.send(new DescribeStacksCommand({ StackName: stack }));
      return Stacks?.[0]?.StackStatus;
    } catch (error) {
      if (error instanceof Error && /does not exist/.test(error.message)) return undefined;
      throw error;
    }
  }

  /** Of the fleet, by what they were published for. */
  async metrics(service: string): Promise<Set<string>> {
    const { Metrics } = await this.#cloudWatch.send(new ListMetricsCommand({ Namespace: "WsFleet" }));
    const ours = Metrics?.filter(({ Dimensions }) => {
      const [dimension, ...others] = Dimensions ?? [];
      return others.length === 0 && dimension?.Name === "Service" && dimension.Value === service;
    });
    return new Set(ours?.map(({ MetricName }) => MetricName ?? ""));
  }

  async logLines(functionName: string): Promise<string[]> {
    const { events } = await this.#logs.send(
      new FilterLogEventsCommand({ logGroupName: `/aws/lambda/${functionName}` }),
    );
    return events?.map(({ message }) => message ?? "") ?? [];
  }

  /** Lambda's own line at the begin of each. */
  async invocations(functionName: string): Promise<number> {
    return (await this.logLines(functionName)).filter((line) => line.startsWith("START ")).length;
  }

  async environmentOf(functionName: string): Promise<Readonly<Record<string, string>>> {
    const { Environment } = await this.#lambda.send(
      new GetFunctionConfigurationCommand({ FunctionName: functionName }),
    );
    return Environment?.Variables ?? {};
  }

  /** Ids of the stream's triggers. */
  async triggers(): Promise<string[]> {
    const { EventSourceMappings } = await this.#lambda.send(new ListEventSourceMappingsCommand());
    return EventSourceMappings?.map(({ UUID }) => UUID ?? "") ?? [];
  }

  /** The service of the cluster of the same name. */
  async service(name: string): Promise<Service> {
    const { services } = await this.ecs.send(new DescribeServicesCommand({ cluster: name, services: [name] }));
    const [service] = services ?? [];
    if (service === undefined) throw new Error(`there is no service ${name}`);
    return service;
  }

  /** Everything whose name begins so, of all kinds that the stack and the framework create. */
  async named(prefix: string): Promise<string[]> {
    const answers = await Promise.all([
      this.dynamoDb.send(new ListTablesCommand()).then((r) => r.TableNames),
      this.#sqs.send(new ListQueuesCommand()).then((r) => r.QueueUrls?.map((url) => url.split("/").at(-1))),
      this.#lambda.send(new ListFunctionsCommand()).then((r) => r.Functions?.map((one) => one.FunctionName)),
      this.#lambda
        .send(new ListEventSourceMappingsCommand())
        .then((r) => r.EventSourceMappings?.map((one) => one.FunctionArn?.split(":")[6])),
      this.events.send(new ListRulesCommand()).then((r) => r.Rules?.map((one) => one.Name)),
      this.#logs
        .send(new DescribeLogGroupsCommand())
        .then((r) => r.logGroups?.map((one) => one.logGroupName?.split("/").at(-1))),
      this.#s3.send(new ListBucketsCommand()).then((r) => r.Buckets?.map((one) => one.Name)),
      this.#ecr.send(new DescribeRepositoriesCommand()).then((r) => r.repositories?.map((one) => one.repositoryName)),
      this.ecs
        .send(new ListTaskDefinitionsCommand())
        .then((r) => r.taskDefinitionArns?.map((arn) => arn.split("/").at(-1))),
      this.ecs
        .send(new ListServicesCommand({ cluster: prefix }))
        .then((r) => r.serviceArns?.map((arn) => arn.split("/").at(-1)))
        .catch((error: unknown) => {
          if (error instanceof Error && error.name === "ClusterNotFoundException") return [];
          throw error;
        }),
    ]);
    return answers.flatMap((names) => names ?? []).filter((name): name is string => name?.startsWith(prefix) === true);
  }
}
