import { readFileSync } from "node:fs";
import path from "node:path";
import { functionDefinition, providerSchema, type FunctionDefinition } from "./serverless/functions.ts";
import { parsePart } from "./serverless/parse-part.ts";
import { queueDefinition, type QueueDefinition } from "./serverless/queues.ts";
import { tableDefinition, type TableDefinition } from "./serverless/tables.ts";
import { memberAt, VariableResolver } from "./serverless/variables.ts";
import { parseCloudFormationYaml } from "./serverless/yaml.ts";

export type { FunctionDefinition } from "./serverless/functions.ts";
export type { QueueDefinition } from "./serverless/queues.ts";
export type { TableDefinition } from "./serverless/tables.ts";

export interface ClusterDefinition {
  readonly logicalId: string;
  readonly clusterName: string;
}

/** What a local run plays of serverless.yml: the deployment and the embedded stack have this one source. */
export interface ServerlessFile {
  readonly projectRoot: string;
  readonly service: string;
  readonly stage: string;
  readonly region: string;
  readonly tables: readonly TableDefinition[];
  readonly queues: readonly QueueDefinition[];
  readonly clusters: readonly ClusterDefinition[];
  readonly functions: readonly FunctionDefinition[];
  /** Of the provider: what every function gets. Values may be CloudFormation references. */
  readonly environment: Readonly<Record<string, unknown>>;
}

export interface ReadOptions {
  /** The folder that holds serverless.yml. */
  readonly projectRoot: string;
  /** What `${sls:stage}` stands for. */
  readonly stage?: string;
  readonly region?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** @throws {Error} naming the field of serverless.yml that is missing, wrong, or cannot be resolved for a local run. */
export function readServerlessFile(options: ReadOptions): ServerlessFile {
  const projectRoot = path.resolve(options.projectRoot);
  const stage = options.stage ?? "local";
  const region = options.region ?? "us-east-1";
  const document = parseCloudFormationYaml(
    readFileSync(path.join(projectRoot, "serverless.yml"), "utf8"),
    "serverless.yml",
  );
  const resolver = new VariableResolver(document, { projectRoot, stage, region, env: options.env ?? {} });

  const resources = resourcesOf(document, resolver);
  const propertiesOf = (type: string): [logicalId: string, properties: unknown][] =>
    resources
      .filter(([, resource]) => memberAt(resource, "Type") === type)
      .map(([id, resource]) => [
        id,
        resolver.resolve(memberAt(resource, "Properties") ?? {}, `resources.${id}.Properties`),
      ]);

  const defaults = parsePart(
    providerSchema,
    membersOf(resolver, memberAt(document, "provider"), PLAYED_OF_PROVIDER, "provider"),
    "provider",
  );

  return {
    projectRoot,
    environment: defaults.environment,
    service: text(resolver.resolve(memberAt(document, "service"), "service"), "service"),
    stage,
    region,
    tables: propertiesOf("AWS::DynamoDB::Table").map(([id, properties]) => tableDefinition(id, properties)),
    queues: propertiesOf("AWS::SQS::Queue").map(([id, properties]) => queueDefinition(id, properties)),
    clusters: propertiesOf("AWS::ECS::Cluster").map(([id, properties]) => ({
      logicalId: id,
      clusterName: text(memberAt(properties, "ClusterName"), `resources.${id}.Properties.ClusterName`),
    })),
    functions: Object.entries(record(memberAt(document, "functions") ?? {}, "functions")).map(([name, value]) =>
      functionDefinition(name, membersOf(resolver, value, PLAYED_OF_FUNCTION, `functions.${name}`), defaults),
    ),
  };
}

/** Only what a local run plays is resolved: the rest may need what only a deployment knows. */
const PLAYED_OF_PROVIDER = ["timeout", "memorySize", "environment"];
const PLAYED_OF_FUNCTION = ["handler", "timeout", "memorySize", "maximumRetryAttempts", "environment", "events"];

function membersOf(resolver: VariableResolver, owner: unknown, names: readonly string[], at: string): object {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = memberAt(owner, name);
      return value === undefined ? [] : [[name, resolver.resolve(value, `${at}.${name}`)]];
    }),
  );
}

/** All resources, their variables still unresolved: `resources` is one mapping or a list of them, inline or `${file(...)}`. */
function resourcesOf(document: unknown, resolver: VariableResolver): [string, unknown][] {
  const declared = memberAt(document, "resources") ?? [];
  const parts: unknown[] = Array.isArray(declared) ? declared : [declared];
  return parts.flatMap((part, i) => {
    const at = `resources.${i}`;
    const section = typeof part === "string" ? resolver.resolve(part, at) : part;
    return Object.entries(record(memberAt(section, "Resources") ?? {}, `${at}.Resources`));
  });
}

function text(value: unknown, at: string): string {
  if (typeof value !== "string" || value === "") throw new Error(`serverless.yml: ${at}: must be a non-empty string`);
  return value;
}

function record(value: unknown, at: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error(`serverless.yml: ${at}: must be a mapping`);
  }
  return value as Record<string, unknown>;
}
