import { propertiesOf, type Template } from "../../../deploy/plugins/osls.ts";

export interface Statement {
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
  readonly Condition?: unknown;
}

/** One action on one resource, as a role allows it. */
export interface Grant {
  readonly role: string;
  readonly action: string;
  readonly resource: unknown;
  readonly condition: unknown;
}

export function roleIds(template: Template): string[] {
  return Object.entries(template.Resources)
    .filter(([, { Type }]) => Type === "AWS::IAM::Role")
    .map(([id]) => id);
}

export function grantsOf(template: Template, role: string): Grant[] {
  const policies = propertiesOf(template, role)["Policies"] as { PolicyDocument: { Statement: Statement[] } }[];
  return policies.flatMap(({ PolicyDocument }) =>
    PolicyDocument.Statement.flatMap((statement) => {
      if (statement.Effect !== "Allow") return [];
      return [statement.Action].flat().flatMap((action) =>
        [statement.Resource].flat().map((resource) => ({
          role,
          action,
          resource: resource,
          condition: statement.Condition,
        })),
      );
    }),
  );
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
