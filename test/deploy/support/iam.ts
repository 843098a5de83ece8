import { propertiesOf, type Template } from "../../../deploy/plugins/osls.ts";

/** All keys that a statement may have: none of `NotAction`, `NotResource`, `NotPrincipal`. */
const STATEMENT_KEYS = new Set(["Sid", "Effect", "Action", "Resource", "Condition"]);
/** All keys that a role may have: no managed policy, of which nobody here sees what it allows. */
const ROLE_KEYS = new Set(["AssumeRolePolicyDocument", "Policies", "Tags"]);

interface Statement {
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
  readonly Condition?: unknown;
}

/** One action on one resource, as a role allows it. */
export interface Grant {
  readonly role: string;
  readonly action: string;
  /** The resource as text: an attribute's path, or the text of an `Fn::Sub`. */
  readonly resource: string;
  readonly condition: unknown;
}

export function roleIds(template: Template): string[] {
  return Object.entries(template.Resources)
    .filter(([, { Type }]) => Type === "AWS::IAM::Role")
    .map(([id]) => id);
}

/** @throws when a role, a statement or a resource is written in a way that is not understood in full */
export function grantsOf(template: Template, role: string): Grant[] {
  const properties = propertiesOf(template, role);
  onlyKeys(properties, ROLE_KEYS, role);
  const policies = properties["Policies"] as { PolicyDocument: { Statement: Statement[] } }[];
  return policies.flatMap(({ PolicyDocument }) =>
    PolicyDocument.Statement.flatMap((statement) => {
      onlyKeys(statement, STATEMENT_KEYS, role);
      if (statement.Effect !== "Allow") throw new Error(`${role}: ${statement.Effect} is not understood`);
      return [statement.Action].flat().flatMap((action) =>
        [statement.Resource].flat().map((resource) => ({
          role,
          action,
          resource: textOf(resource, role),
          condition: statement.Condition,
        })),
      );
    }),
  );
}

function onlyKeys(value: object, known: ReadonlySet<string>, at: string): void {
  for (const key of Object.keys(value)) if (!known.has(key)) throw new Error(`${at}: ${key} is not understood`);
}

function textOf(resource: unknown, role: string): string {
  if (typeof resource === "string") return resource;
  const { "Fn::GetAtt": attribute, "Fn::Sub": text } = resource as { "Fn::GetAtt"?: string[]; "Fn::Sub"?: unknown };
  if (attribute !== undefined) return attribute.join(".");
  if (typeof text === "string") return text;
  throw new Error(`${role}: the resource ${JSON.stringify(resource)} is not understood`);
}

/** The action that a command of the SDK needs. Batches of SQS are judged as their single commands. */
export function actionOf(command: string): string {
  const service = SERVICES.find(([pattern]) => pattern.test(command))?.[1];
  if (service === undefined) throw new Error(`no service is known for the command ${command}`);
  return `${service}:${service === "sqs" ? command.replace(/Batch$/, "") : command}`;
}

const SERVICES: readonly (readonly [RegExp, string])[] = [
  [/^(Get|Put|Update|Delete|BatchWrite|BatchGet)Item$|^(Query|Scan|DescribeTable)$/, "dynamodb"],
  [/Message(Batch|Visibility|VisibilityBatch)?$|^GetQueueAttributes$/, "sqs"],
  [/^PutMetricData$/, "cloudwatch"],
  [/^DescribeServices$/, "ecs"],
];
